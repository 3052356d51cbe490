#include "superstep/base/error.h"
#include "superstep/edge/kafka/kafka.h"

namespace superstep::edge {
namespace {

[[noreturn]] void refuse(const KafkaAddress& address) {
  throw Error(ErrorCode::unsupported, "this program was built without Kafka", address.text(),
              "install librdkafka-dev and build anew; ZeroMQ (tcp://HOST:PORT) is always there");
}

}  // namespace

std::unique_ptr<Inlet> open_kafka_inlet(const KafkaAddress& address, std::size_t) { refuse(address); }
std::unique_ptr<Outlet> open_kafka_outlet(const KafkaAddress& address, const std::string&) {
  refuse(address);
}

}  // namespace superstep::edge
