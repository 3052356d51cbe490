// A stream of messages over Kafka, by librdkafka, which is optional: a program that was built without it says
// so when it is asked for.
//
// A message of one part is the value of one of Kafka's; of one with two parts the first, JSON, is its header
// "superstep" and the second its value. Offsets are committed when the receiver says that what came before is
// kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/edge/stream/ends.h"

namespace superstep::edge {

struct KafkaAddress {
  std::string brokers;  // "HOST:PORT,HOST:PORT"
  std::string topic;
  std::string group = "superstep";         // under whose name it is kept where a receiver has come to
  std::vector<std::int32_t> partitions{};  // that are received; none: all
  std::string text() const;
};

bool is_kafka(const std::string& address);  // "kafka://..."
// "kafka://HOST:PORT[,HOST:PORT...]/TOPIC[?group=NAME&partitions=0,1]". Throws Error (invalid_argument).
KafkaAddress kafka_address(const std::string& text);

// Partitions are assigned here and not by the brokers, who would hold those of a receiver that was killed for
// a session's time: it begins at once where its group has come to, or at the oldest message. Throw Error:
// unsupported (built without it), io (no broker answers).
std::unique_ptr<Inlet> open_kafka_inlet(const KafkaAddress& address, std::size_t most_bytes);
// Messages with one key stay in their order; "": they need not.
std::unique_ptr<Outlet> open_kafka_outlet(const KafkaAddress& address, const std::string& key);

}  // namespace superstep::edge
