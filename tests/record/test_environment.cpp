// What every result says of the machine: every group is there, and null stands for what is not known.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/record/environment.h"
#include "superstep/record/host_load.h"

namespace superstep::record {
namespace {

TEST(HostLoad, ReadsTheKernelsTimes) {
  const auto time = parse_processor_time("cpu  100 0 50 800 50 0 0 25 0 0\ncpu0 1 2", 100);
  ASSERT_TRUE(time);
  EXPECT_NEAR(time->total, 10.25, 1e-12);
  EXPECT_NEAR(time->idle, 8.5, 1e-12);
  EXPECT_NEAR(time->stolen, 0.25, 1e-12);
  for (const char* bad :
       {"", "cpu", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 5 6 7 x", "cpu -1 2 3 4 5 6 7 8"})
    EXPECT_FALSE(parse_processor_time(bad, 100)) << bad;
}

TEST(Environment, HasEveryGroupAndNullForWhatIsNotKnown) {
  const HostLoad load;
  const nlohmann::json record = environment_record(2, &load);
  for (const char* group : {"date", "program", "host", "placement", "device", "software", "data"})
    EXPECT_TRUE(record.contains(group)) << group;
  for (const char* field :
       {"hostname", "processor", "sockets", "cores", "hardware_threads", "numa_nodes", "caches", "clock",
        "smt", "memory_bytes", "aslr", "huge_pages", "load_average", "load"})
    EXPECT_TRUE(record["host"].contains(field)) << field;
  EXPECT_EQ(record["placement"]["threads"], 2);
  EXPECT_TRUE(record["placement"]["numa_policy"].is_null());
  EXPECT_TRUE(environment_record(1)["host"]["load"].is_null());
}

}  // namespace
}  // namespace superstep::record
