// Kafka: addresses, and messages through a mock of a cluster that librdkafka itself has.
#include <gtest/gtest.h>

#include "superstep/edge/kafka/kafka.h"
#include "tests/expect_error.h"

#ifdef SUPERSTEP_HAS_KAFKA
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#endif

namespace superstep::edge {
namespace {

TEST(Kafka, ReadsAddresses) {
  const KafkaAddress address = kafka_address("kafka://a:9092,b.c:1/my.topic?group=g-1");
  EXPECT_EQ(address.brokers, "a:9092,b.c:1");
  EXPECT_EQ(address.topic, "my.topic");
  EXPECT_EQ(address.group, "g-1");
  EXPECT_EQ(kafka_address("kafka://a:9092/t").group, "superstep");
  EXPECT_EQ(kafka_address("kafka://a:9092/t?partitions=0,7&group=g").partitions,
            (std::vector<std::int32_t>{0, 7}));
  for (const char* wrong :
       {"kafka://", "kafka://a:9092", "kafka://a:9092/", "kafka://a/t", "kafka://a:x/t",
        "kafka://a:9092/t?x=y", "kafka://a:9092/t?group=", "kafka://a:9092/t t", "kafka://:9092/t",
        "tcp://a:9092/t", "kafka://a:1,/t", "kafka://a:9092?group=g/t", "kafka://a:9092/..",
        "kafka://a:9092/t?partitions=", "kafka://a:9092/t?partitions=-1", "kafka://a:9092/t?partitions=1.5"})
    expect_error(ErrorCode::invalid_argument, {"no address of a topic", wrong},
                 [&] { kafka_address(wrong); });
}

#ifndef SUPERSTEP_HAS_KAFKA

TEST(Kafka, IsSaidToBeAbsent) {
  expect_error(ErrorCode::unsupported, {"built without Kafka", "librdkafka-dev"},
               [] { open_kafka_inlet(kafka_address("kafka://127.0.0.1:1/t"), 1000); });
}

#else

class Cluster {
 public:
  Cluster() {
    char why[256];
    holder_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
    cluster_ = rd_kafka_mock_cluster_new(holder_, 2);
  }
  ~Cluster() {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(holder_);
  }
  KafkaAddress topic(const std::string& name) const {
    return {.brokers = rd_kafka_mock_cluster_bootstraps(cluster_), .topic = name};
  }
  rd_kafka_mock_cluster_t* get() const { return cluster_; }

 private:
  rd_kafka_t* holder_;
  rd_kafka_mock_cluster_t* cluster_;
};

std::vector<std::string> texts_of(const MessageParts& parts) {
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
  return texts;
}

// The next message, however long its way is.
std::vector<std::string> next(Inlet& inlet) {
  MessageParts parts;
  for (int i = 0; i < 300; ++i)
    if (inlet.receive(parts, std::chrono::milliseconds(100))) return texts_of(parts);
  return {};
}

TEST(Kafka, CarriesMessagesOfOnePartAndOfTwoInTheirOrder) {
  const Cluster cluster;
  const auto outlet = open_kafka_outlet(cluster.topic("t"), "key");
  std::vector<std::vector<std::string> > sent;
  for (int i = 0; i < 500; ++i) {
    sent.push_back(i % 3 ? std::vector<std::string>{"{\"n\":" + std::to_string(i) + "}", std::string(i, 'x')}
                         : std::vector<std::string>{"alone " + std::to_string(i)});
    ASSERT_TRUE(outlet->send(sent.back(), std::chrono::milliseconds(1000)));
  }
  outlet->flush(std::chrono::milliseconds(10'000));
  const auto inlet = open_kafka_inlet(cluster.topic("t"), 1 << 20);
  for (const auto& message : sent) ASSERT_EQ(next(*inlet), message);
}

TEST(Kafka, GoesOnBehindWhatWasKept) {
  const Cluster cluster;
  const auto outlet = open_kafka_outlet(cluster.topic("t"), "key");
  for (int i = 0; i < 30; ++i) {
    const std::string message[] = {std::to_string(i)};
    ASSERT_TRUE(outlet->send(message, std::chrono::milliseconds(1000)));
  }
  outlet->flush(std::chrono::milliseconds(10'000));
  {
    const auto inlet = open_kafka_inlet(cluster.topic("t"), 1 << 20);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(next(*inlet), std::vector{std::to_string(i)});
    EXPECT_TRUE(inlet->has_unkept());
    inlet->acknowledge();
    EXPECT_FALSE(inlet->has_unkept());
    for (int i = 10; i < 15; ++i) ASSERT_EQ(next(*inlet), std::vector{std::to_string(i)});
  }  // five were received and not kept: they come again
  const auto inlet = open_kafka_inlet(cluster.topic("t"), 1 << 20);
  for (int i = 10; i < 30; ++i) ASSERT_EQ(next(*inlet), std::vector{std::to_string(i)});
}

TEST(Kafka, SaysThatNoBrokerAnswers) {
  expect_error(ErrorCode::io, {"no broker answers", "127.0.0.1:1"},
               [] { open_kafka_outlet(kafka_address("kafka://127.0.0.1:1/t"), ""); });
}

TEST(Kafka, SaysWhenAMessageHasNotArrived) {
  const Cluster cluster;
  const auto outlet = open_kafka_outlet(cluster.topic("t"), "key");
  rd_kafka_mock_push_request_errors(cluster.get(), 0 /* Produce */, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  const std::string message[] = {"never"};
  ASSERT_TRUE(outlet->send(message, std::chrono::milliseconds(1000)));
  expect_error(ErrorCode::io, {"has not arrived"}, [&] { outlet->flush(std::chrono::milliseconds(10'000)); });
}

#endif

}  // namespace
}  // namespace superstep::edge
