// The study of docs/add-a-study.md.
#include <gtest/gtest.h>

#include "superstep/study/cells.h"

namespace superstep::docs {
namespace {

// [add-a-study]
constexpr const char* batches = R"toml(
title = "BraggNN by batch on three machines"
shows = "From which batch on a larger one gains nothing."
minutes = 1

[[cells]]
workload = "braggnn"
mode = "train"
machine = ["gc200", "a100-40gb", "h100"]
precision = "fp16"
micro_batch = [64, 256, 1024]
metric = "throughput"
unit = "samples/s"

[[measure]]
with = "bench"
least = 3

[plot]
x = "micro_batch"
series = "machine"
log_x = true
)toml";
// [end]

TEST(ExampleStudy, HasNineCells) {
  const study::Study read = study::parse_study(batches, "batches.toml");
  EXPECT_EQ(read.name, "batches");
  EXPECT_EQ(study::cells_of(read).list.size(), 9U);
}

}  // namespace
}  // namespace superstep::docs
