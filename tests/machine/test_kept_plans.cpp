// Plans on disk: written, read back, and refused where they are damaged.
#include <gtest/gtest.h>

#include "superstep/machine/ipu/kept_plans.h"

namespace superstep::machine::ipu {
namespace {

PartPlan a_plan(int number) {
  PartPlan plan = plan_parts({}, matrix_product(1, 64 * number, 128, 256, ElementType::f16), Pass::forward);
  plan.plan.macs = number;
  return plan;
}

void expect_same(const PartPlan& a, const PartPlan& b) {
  EXPECT_EQ(a.plan.vertex, b.plan.vertex);
  EXPECT_EQ(a.plan.partition, b.plan.partition);
  EXPECT_EQ(a.plan.tiles, b.plan.tiles);
  EXPECT_EQ(a.plan.macs, b.plan.macs);
  EXPECT_EQ(a.plan.cycles.total(), b.plan.cycles.total());
  EXPECT_EQ(a.plan.bytes.total(), b.plan.bytes.total());
  EXPECT_EQ(a.form, b.form);
  EXPECT_EQ(a.combined, b.combined);
  EXPECT_EQ(a.grain.vertex, b.grain.vertex);
  EXPECT_EQ(a.grain.outputs, b.grain.outputs);
  EXPECT_EQ(a.grain.units, b.grain.units);
  EXPECT_EQ(a.partition.rows, b.partition.rows);
  EXPECT_EQ(a.partition.outputs, b.partition.outputs);
  EXPECT_EQ(a.swapped, b.swapped);
}

TEST(KeptPlans, ComeBackAsTheyWere) {
  std::string text;
  for (int i = 1; i <= 3; ++i) text += record_of({1.0 * i, 0.5, -3}, a_plan(i));
  PlansByKey found;
  EXPECT_EQ(read_records(text, found), text.size());
  ASSERT_EQ(found.size(), 3u);
  for (int i = 1; i <= 3; ++i) expect_same(found.at({1.0 * i, 0.5, -3}), a_plan(i));
}

TEST(KeptPlans, OfAFileThatIsCutShortTheWholeRecordsCount) {
  const std::string first = record_of({1}, a_plan(1)), second = record_of({2}, a_plan(2));
  for (const std::size_t left : {std::size_t{0}, std::size_t{3}, std::size_t{9}, second.size() - 1}) {
    PlansByKey found;
    EXPECT_EQ(read_records(first + second.substr(0, left), found), first.size());
    EXPECT_EQ(found.size(), 1u);
  }
}

// Every byte of a record is held by its checksum, its length or its reading.
TEST(KeptPlans, AChangedByteIsSeen) {
  const std::string whole = record_of({1, 2}, a_plan(1));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    PlansByKey found;
    EXPECT_EQ(read_records(damaged, found), 0u) << i;
    EXPECT_TRUE(found.empty());
  }
}

}  // namespace
}  // namespace superstep::machine::ipu
