#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "superstep/base/error.h"
#include "superstep/edge/kafka/library/client.h"

namespace superstep::edge {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Offsets are committed so often at most: what came since is sent again after a crash, and known then.
constexpr auto between_commits = std::chrono::milliseconds(100);
constexpr std::size_t most_together = 1024;

struct MessageDeleter {
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
};

// What is fetched at a time: the library asks for room for a message of its own default at least.
std::string bytes_text(std::size_t bytes, std::size_t more = 0) {
  constexpr std::size_t least = 1'000'000, most = 1'000'000'000;
  return std::to_string(std::clamp(bytes, least, most) + more);
}

class KafkaInlet : public Inlet {
 public:
  KafkaInlet(const KafkaAddress& address, std::size_t most_bytes)
      : address_(address),
        most_bytes_(most_bytes),
        client_(
            RD_KAFKA_CONSUMER, address,
            {{"group.id", address.group},
             {"auto.offset.reset", "earliest"},
             {"enable.auto.commit", "false"},
             {"enable.auto.offset.store", "false"},
             {"allow.auto.create.topics", "true"},
             {"fetch.message.max.bytes", bytes_text(most_bytes)},
             {"fetch.max.bytes", bytes_text(most_bytes)},
             {"receive.message.max.bytes", bytes_text(most_bytes, 100'000)},
             {"queued.max.messages.kbytes", std::to_string(std::max<std::size_t>(1, most_bytes >> 10))}}) {
    rd_kafka_poll_set_consumer(client_.get());
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    for (const std::int32_t partition : wanted_partitions())
      rd_kafka_topic_partition_list_add(list, address_.topic.c_str(), partition)->offset =
          RD_KAFKA_OFFSET_STORED;
    const rd_kafka_resp_err_t error = rd_kafka_assign(client_.get(), list);
    rd_kafka_topic_partition_list_destroy(list);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail(error);
  }
  ~KafkaInlet() override {
    commit(kept_, false);
    message_.reset();
    rd_kafka_consumer_close(client_.get());
  }

  std::string endpoint() const override { return address_.text() + "?group=" + address_.group; }

  bool receive(MessageParts& parts, std::chrono::milliseconds wait) override {
    parts.clear();
    message_.reset(rd_kafka_consumer_poll(client_.get(), static_cast<int>(wait.count())));
    if (!message_ || !is_message(*message_)) return false;
    if (unkept_.empty()) oldest_ = SteadyClock::now();
    ++count_;
    unkept_[message_->partition] = message_->offset + 1;
    if (message_->len <= most_bytes_) take_parts(parts);
    return true;
  }

  bool has_unkept() const override { return !unkept_.empty(); }
  bool is_due() const override {
    return count_ >= most_together || (has_unkept() && SteadyClock::now() - oldest_ >= between_commits);
  }
  void acknowledge() override {
    for (const auto& [partition, offset] : unkept_) kept_[partition] = offset;
    commit(unkept_, true);
    unkept_.clear();
    count_ = 0;
  }

 private:
  using Offsets = std::map<std::int32_t, std::int64_t>;

  std::vector<std::int32_t> wanted_partitions() const {
    std::vector<std::int32_t> wanted = address_.partitions;
    for (const std::int32_t partition : wanted)
      if (partition >= client_.partitions())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("has {} partitions, and none of number {}", client_.partitions(), partition),
                    address_.text());
    for (std::int32_t partition = 0; address_.partitions.empty() && partition < client_.partitions();
         ++partition)
      wanted.push_back(partition);
    return wanted;
  }

  [[noreturn]] void fail(rd_kafka_resp_err_t error) const {
    throw Error(ErrorCode::io, fmt::format("cannot be received from: {}", rd_kafka_err2str(error)),
                address_.text());
  }

  // What is no message is news of the connection: the library goes on by itself, unless it says that it
  // cannot.
  bool is_message(const rd_kafka_message_t& message) const {
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    if (message.err == RD_KAFKA_RESP_ERR__FATAL ||
        message.err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
        message.err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
      fail(message.err);
    return false;
  }

  void take_parts(MessageParts& parts) const {
    rd_kafka_headers_t* headers = nullptr;
    const void* head = nullptr;
    std::size_t size = 0;
    if (rd_kafka_message_headers(message_.get(), &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, kafka_header, &head, &size) == RD_KAFKA_RESP_ERR_NO_ERROR)
      parts.emplace_back(static_cast<const std::byte*>(head), size);
    parts.emplace_back(static_cast<const std::byte*>(message_->payload), message_->len);
  }

  void commit(const Offsets& offsets, bool at_leisure) {
    if (offsets.empty()) return;
    rd_kafka_topic_partition_list_t* list =
        rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size()));
    for (const auto& [partition, offset] : offsets)
      rd_kafka_topic_partition_list_add(list, address_.topic.c_str(), partition)->offset = offset;
    // One that fails is made good by the next; at worst messages come once more.
    rd_kafka_commit(client_.get(), list, at_leisure ? 1 : 0);
    rd_kafka_topic_partition_list_destroy(list);
  }

  const KafkaAddress address_;
  const std::size_t most_bytes_;
  KafkaClient client_;
  std::unique_ptr<rd_kafka_message_t, MessageDeleter> message_;
  Offsets unkept_, kept_;  // by partition, the next that is wanted
  std::size_t count_ = 0;
  SteadyClock::time_point oldest_;
};

}  // namespace

std::unique_ptr<Inlet> open_kafka_inlet(const KafkaAddress& address, std::size_t most_bytes) {
  return std::make_unique<KafkaInlet>(address, most_bytes);
}

}  // namespace superstep::edge
