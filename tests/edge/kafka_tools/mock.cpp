// A broker that is not there, of librdkafka itself: prints where it is, and stands until its input ends.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdio>

int main() {
  char why[256];
  rd_kafka_t* holder = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
  if (!holder) return 1;
  rd_kafka_mock_cluster_t* cluster = rd_kafka_mock_cluster_new(holder, 3);
  if (!cluster) return 1;
  std::printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(holder);
  return 0;
}
