#include <fmt/format.h>

#include <atomic>

#include "superstep/base/error.h"
#include "superstep/edge/kafka/library/client.h"

namespace superstep::edge {
namespace {

class KafkaOutlet : public Outlet {
 public:
  KafkaOutlet(const KafkaAddress& address, std::string key)
      : address_(address),
        key_(std::move(key)),
        client_(RD_KAFKA_PRODUCER, address,
                {{"enable.idempotence", "true"},  // what is sent again is there once
                 {"message.max.bytes", "1000000000"},
                 {"queue.buffering.max.messages", "10000"},
                 {"queue.buffering.max.kbytes", "262144"},
                 {"linger.ms", "1"}},
                delivered, this) {}
  // What has not arrived by then is given up: who cares has called flush().
  ~KafkaOutlet() override { rd_kafka_flush(client_.get(), 1000); }

  std::string endpoint() const override { return address_.text(); }

  bool send(std::span<const std::string> parts, std::chrono::milliseconds wait) override {
    require_no_failure();
    const std::string& value = parts.back();
    rd_kafka_headers_t* headers = nullptr;
    if (parts.size() > 1) {
      headers = rd_kafka_headers_new(1);
      rd_kafka_header_add(headers, kafka_header, -1, parts[0].data(), static_cast<ssize_t>(parts[0].size()));
    }
    rd_kafka_resp_err_t error = produce(value, headers);
    if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(client_.get(), static_cast<int>(wait.count()));
      error = produce(value, headers);
    }
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_poll(client_.get(), 0);
      return true;
    }
    if (headers) rd_kafka_headers_destroy(headers);
    if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) return false;
    throw Error(ErrorCode::io, fmt::format("cannot be sent to: {}", rd_kafka_err2str(error)),
                address_.text());
  }

  void flush(std::chrono::milliseconds wait) override {
    const rd_kafka_resp_err_t error = rd_kafka_flush(client_.get(), static_cast<int>(wait.count()));
    require_no_failure();
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      throw Error(ErrorCode::io,
                  fmt::format("{} messages have not arrived: {}", rd_kafka_outq_len(client_.get()),
                              rd_kafka_err2str(error)),
                  address_.text());
  }

 private:
  // Takes the headers where it succeeds.
  rd_kafka_resp_err_t produce(const std::string& value, rd_kafka_headers_t* headers) {
    const auto bytes = [](const std::string& text) { return const_cast<char*>(text.data()); };
    if (headers)
      return rd_kafka_producev(
          client_.get(), RD_KAFKA_V_TOPIC(address_.topic.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
          RD_KAFKA_V_KEY(key_.empty() ? nullptr : key_.data(), key_.size()),
          RD_KAFKA_V_VALUE(bytes(value), value.size()), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    return rd_kafka_producev(client_.get(), RD_KAFKA_V_TOPIC(address_.topic.c_str()),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                             RD_KAFKA_V_KEY(key_.empty() ? nullptr : key_.data(), key_.size()),
                             RD_KAFKA_V_VALUE(bytes(value), value.size()), RD_KAFKA_V_END);
  }

  static void delivered(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) static_cast<KafkaOutlet*>(self)->failure_ = message->err;
  }

  void require_no_failure() {
    const rd_kafka_resp_err_t failure = failure_.exchange(RD_KAFKA_RESP_ERR_NO_ERROR);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
      throw Error(ErrorCode::io, fmt::format("a message has not arrived: {}", rd_kafka_err2str(failure)),
                  address_.text());
  }

  const KafkaAddress address_;
  std::string key_;
  std::atomic<rd_kafka_resp_err_t> failure_ = RD_KAFKA_RESP_ERR_NO_ERROR;
  KafkaClient client_;
};

}  // namespace

std::unique_ptr<Outlet> open_kafka_outlet(const KafkaAddress& address, const std::string& key) {
  return std::make_unique<KafkaOutlet>(address, key);
}

}  // namespace superstep::edge
