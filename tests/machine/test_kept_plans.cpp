// Plans on disk: written, read back, and refused where they are damaged.
#include <gtest/gtest.h>

#include <cstring>

#include "superstep/base/random.h"
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

// One kind that is written and not read would lose all that stands behind it.
TEST(KeptPlans, OfEveryVertexAndFormComeBack) {
  PartPlan plan = a_plan(1);
  for (int vertex = 0; vertex <= static_cast<int>(last_vertex); ++vertex)
    for (int form = 0; form <= static_cast<int>(last_form); ++form) {
      plan.grain.vertex = static_cast<Vertex>(vertex);
      plan.form = static_cast<ProductForm>(form);
      const std::string record = record_of({1}, plan);
      PlansByKey found;
      EXPECT_EQ(read_records(record, found), record.size()) << vertex << " " << form;
    }
  plan.grain.vertex = static_cast<Vertex>(static_cast<int>(last_vertex) + 1);
  PlansByKey found;
  EXPECT_EQ(read_records(record_of({1}, plan), found), 0U);
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

// Bodies of any bytes under a right length and checksum: they are records or are refused, and nothing else
// happens.
TEST(KeptPlans, AnyBodyIsReadOrRefused) {
  const std::string whole = record_of({1, 2}, a_plan(1));
  RandomStream random(1);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string body = whole.substr(8);
    if (round % 4 == 0) body.resize(random.below(body.size()));
    for (std::uint64_t change = random.below(4); change > 0 && !body.empty(); --change)
      body[random.below(body.size())] = static_cast<char>(random.next_u32());
    std::uint32_t head[2] = {static_cast<std::uint32_t>(body.size()), 0x811c9dc5u};
    for (const char byte : body) head[1] = (head[1] ^ static_cast<unsigned char>(byte)) * 0x01000193u;
    std::string record(sizeof head, '\0');
    std::memcpy(record.data(), head, sizeof head);
    PlansByKey found;
    refused += read_records(record + body, found) == 0;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 4000);
}

}  // namespace
}  // namespace superstep::machine::ipu
