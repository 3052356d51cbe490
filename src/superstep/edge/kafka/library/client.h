// A client of Kafka and its configuration.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "superstep/edge/kafka/kafka.h"
#include "superstep/edge/kafka/library/functions.h"

namespace superstep::edge {

inline constexpr const char* kafka_header = "superstep";

using KafkaOptions = std::vector<std::pair<const char*, std::string>>;

class KafkaClient {
 public:
  // A consumer or a producer. `delivered` hears of every message of a producer. Throws Error (io) where no
  // broker answers, or the topic is refused.
  KafkaClient(rd_kafka_type_t type, const KafkaAddress& address, const KafkaOptions& options,
              void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr,
              void* opaque = nullptr);
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  rd_kafka_t* get() const { return client_; }
  std::int32_t partitions() const { return partitions_; }  // of the topic

 private:
  rd_kafka_t* client_ = nullptr;
  std::int32_t partitions_ = 0;
};

}  // namespace superstep::edge
