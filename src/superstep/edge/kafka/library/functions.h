// The functions of librdkafka that are called, which is opened when the first of them is.
#pragma once

#include <librdkafka/rdkafka.h>

#include "superstep/base/system/late_library.h"

namespace superstep::edge {

inline constinit const LateLibrary kafka_library("Kafka", SUPERSTEP_LATE_KAFKA);
SUPERSTEP_LATE(kafka_library, rd_kafka_assign);
SUPERSTEP_LATE(kafka_library, rd_kafka_commit);
SUPERSTEP_LATE(kafka_library, rd_kafka_conf_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_conf_new);
SUPERSTEP_LATE(kafka_library, rd_kafka_conf_set);
SUPERSTEP_LATE(kafka_library, rd_kafka_conf_set_dr_msg_cb);
SUPERSTEP_LATE(kafka_library, rd_kafka_conf_set_log_cb);
SUPERSTEP_LATE(kafka_library, rd_kafka_conf_set_opaque);
SUPERSTEP_LATE(kafka_library, rd_kafka_consumer_close);
SUPERSTEP_LATE(kafka_library, rd_kafka_consumer_poll);
SUPERSTEP_LATE(kafka_library, rd_kafka_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_err2str);
SUPERSTEP_LATE(kafka_library, rd_kafka_flush);
SUPERSTEP_LATE(kafka_library, rd_kafka_header_add);
SUPERSTEP_LATE(kafka_library, rd_kafka_header_get_last);
SUPERSTEP_LATE(kafka_library, rd_kafka_headers_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_headers_new);
SUPERSTEP_LATE(kafka_library, rd_kafka_message_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_message_headers);
SUPERSTEP_LATE(kafka_library, rd_kafka_metadata);
SUPERSTEP_LATE(kafka_library, rd_kafka_metadata_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_new);
SUPERSTEP_LATE(kafka_library, rd_kafka_outq_len);
SUPERSTEP_LATE(kafka_library, rd_kafka_poll);
SUPERSTEP_LATE(kafka_library, rd_kafka_poll_set_consumer);
SUPERSTEP_LATE(kafka_library, rd_kafka_producev);
SUPERSTEP_LATE(kafka_library, rd_kafka_topic_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_topic_new);
SUPERSTEP_LATE(kafka_library, rd_kafka_topic_partition_list_add);
SUPERSTEP_LATE(kafka_library, rd_kafka_topic_partition_list_destroy);
SUPERSTEP_LATE(kafka_library, rd_kafka_topic_partition_list_new);

}  // namespace superstep::edge
