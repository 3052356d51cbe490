#include "superstep/edge/kafka/library/client.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::edge {
namespace {

constexpr int patience = 10'000;  // ms, for a broker to answer at the beginning

rd_kafka_conf_t* configuration(const KafkaAddress& address, const KafkaOptions& options) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(conf, nullptr);  // what concerns a user is said by errors here
  KafkaOptions all{{"bootstrap.servers", address.brokers}, {"client.id", "superstep"}};
  all.insert(all.end(), options.begin(), options.end());
  for (const auto& [name, value] : all) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value.c_str(), why, sizeof why) == RD_KAFKA_CONF_OK) continue;
    rd_kafka_conf_destroy(conf);
    throw Error(ErrorCode::internal, fmt::format("option {} of Kafka is refused: {}", name, why),
                address.text());
  }
  return conf;
}

// The partitions of the topic, which may be made by asking. Throws where nobody answers for it.
std::int32_t partitions_of(rd_kafka_t* client, const KafkaAddress& address) {
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client, address.topic.c_str(), nullptr);
  const struct rd_kafka_metadata* metadata = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, patience);
  std::int32_t partitions = 0;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (metadata->topic_cnt == 1) partitions = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
  }
  if (topic) rd_kafka_topic_destroy(topic);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw Error(ErrorCode::io, fmt::format("no broker answers: {}", rd_kafka_err2str(error)), address.text(),
                "see that the broker runs and is reached under this name");
  return partitions;
}

}  // namespace

KafkaClient::KafkaClient(rd_kafka_type_t type, const KafkaAddress& address, const KafkaOptions& options,
                         void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void*), void* opaque) {
  rd_kafka_conf_t* conf = configuration(address, options);
  if (delivered) rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  rd_kafka_conf_set_opaque(conf, opaque);
  char why[256];
  client_ = rd_kafka_new(type, conf, why, sizeof why);
  if (!client_) {
    rd_kafka_conf_destroy(conf);
    throw Error(ErrorCode::io, fmt::format("a client of Kafka cannot be made: {}", why), address.text());
  }
  try {
    partitions_ = partitions_of(client_, address);
  } catch (...) {
    rd_kafka_destroy(client_);
    throw;
  }
}

KafkaClient::~KafkaClient() { rd_kafka_destroy(client_); }

}  // namespace superstep::edge
