// The numbers of a sweep.
#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/lab/sweep/sweep.h"

namespace superstep::lab {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(Sweep, CountsAreListsAndDoublings) {
  EXPECT_EQ(counts_from("8..64", "--x"), (Counts{8, 16, 32, 64}));
  EXPECT_EQ(counts_from("3,1,2..9,4", "--x"), (Counts{1, 2, 3, 4, 8}));
  for (const char* wrong : {"", "0", "a", "1..", "..4", "8..2", "1,,2", "-1", "1.5", "9999999"})
    EXPECT_THROW(counts_from(wrong, "--x"), Error) << wrong;
}

TEST(Sweep, LeavesNothingOutOnAnyNumberOfThreads) {
  SweepSettings settings;
  settings.model.workload = "mlp";
  settings.machines = {"gc200", "a100-40gb"};
  settings.precisions = {"f16", "f32"};
  settings.micro_batches = {1, 64};
  settings.accumulates = {1, 2};
  settings.replicas = {1, 4};
  settings.recomputes = {false, true};
  const std::vector<SweepPoint> one = sweep(settings);
  EXPECT_EQ(one.size(), 64U);
  settings.threads = 7;
  EXPECT_EQ(text_of(sweep(settings), 0), text_of(one, 0));
}

}  // namespace
}  // namespace superstep::lab
