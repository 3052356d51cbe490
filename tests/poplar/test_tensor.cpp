// Views say which elements are meant: held against what a loop over indices says, and refused where they lie
// outside.
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;

namespace {

// The elements of a view of 0, 1, 2 ..., as a program sees them.
Values elements(Machine& machine, const Tensor& view) {
  Tensor copy = machine.variable(INT, view.shape(), "copy");
  return machine.run(Copy(view, copy), copy);
}

}  // namespace

TEST(PoplarTensor, SlicesTakeIntervalsOfDimensions) {
  Machine machine;
  const Tensor t = machine.counting({2, 3, 2});
  EXPECT_EQ(elements(machine, t.slice(1, 3, 1)), (Values{2, 3, 4, 5, 8, 9, 10, 11}));
}

TEST(PoplarTensor, SliceOfShorterVectorsLeavesTheRestWhole) {
  Machine machine;
  const Tensor t = machine.counting({2, 3, 2});
  EXPECT_EQ(elements(machine, t.slice({1, 1}, {2, 3})), (Values{8, 9, 10, 11}));
}

TEST(PoplarTensor, EqualEndsGiveAnEmptyTensor) {
  Machine machine;
  const Tensor t = machine.counting({2, 3});
  const Tensor none = t.slice(1, 1, 1);
  EXPECT_EQ(none.shape(), (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(none.numElements(), 0u);
  EXPECT_EQ(concat(none, t, 1), t);
  EXPECT_EQ(elements(machine, none), Values{});
  EXPECT_TRUE(none.flatten().reshape({0, 5}).transpose().getContiguousRegions().empty());
}

TEST(PoplarTensor, AScalarHasOneElementAndNoDimension) {
  Machine machine;
  const Tensor t = machine.counting({3});
  EXPECT_EQ(t[2].rank(), 0u);
  EXPECT_EQ(t[2].numElements(), 1u);
  EXPECT_EQ(elements(machine, t[2]), Values{2});
  EXPECT_EQ(t[2].reshape({1, 1}).squeeze(), t[2]);
  expect_throw<index_error>([&] { t[2][0]; }, "no dimension 0");
}

TEST(PoplarTensor, SlicesOfNestedListsAreJoined) {
  Machine machine;
  const Tensor t = machine.counting({6});
  const std::vector<std::vector<Interval>> lists = {{{0, 2}, {4, 6}}, {}};
  const auto parts = t.slices(lists);
  EXPECT_EQ(elements(machine, parts.at(0)), (Values{0, 1, 4, 5}));
  EXPECT_EQ(parts.at(1).numElements(), 0u);
}

TEST(PoplarTensor, SlicesOfIndicesKeepTheDimension) {
  Machine machine;
  const Tensor t = machine.counting({2, 3});
  const auto parts = t.slices(std::vector<unsigned>{2, 0}, 1);
  EXPECT_EQ(parts.at(0).shape(), (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(elements(machine, parts.at(0)), (Values{2, 5}));
}

TEST(PoplarTensor, ShufflesMoveDimensions) {
  Machine machine;
  const Tensor t = machine.counting({2, 3, 4});
  const Tensor moved = t.dimShuffle({2, 0, 1});
  EXPECT_EQ(moved.shape(), (std::vector<std::size_t>{4, 2, 3}));
  EXPECT_EQ(moved[3][1][2], t[1][2][3]);
  EXPECT_EQ(t.dimRoll(2), moved);
  EXPECT_EQ(t.dimRoll(0, 2)[1][2][0], t[0][1][2]);
  EXPECT_EQ(t.dimShufflePartial({0}, {2})[1][2][0], t[0][1][2]);
  EXPECT_EQ(t.transpose()[3][2][1], t[1][2][3]);
  EXPECT_EQ(elements(machine, t.slice({0, 0, 0}, {2, 2, 1}).transpose()), (Values{0, 12, 4, 16}));
}

TEST(PoplarTensor, BroadcastRepeatsTheWholeAndUpsampleEachIndex) {
  Machine machine;
  const Tensor t = machine.counting({2});
  Machine second;
  const Tensor u = second.counting({2});
  EXPECT_EQ(elements(machine, t.broadcast(2, 0)), (Values{0, 1, 0, 1}));
  EXPECT_EQ(elements(second, u.upsample(2, 0, UpsampleMethod::REPEAT)), (Values{0, 0, 1, 1}));
  EXPECT_TRUE(t.broadcast(2, 0).containsAliases());
  EXPECT_FALSE(t.broadcast(2, 0).isParallelWriteable());
}

TEST(PoplarTensor, SubSampleTakesEveryNthAndTheFirst) {
  Machine machine;
  EXPECT_EQ(elements(machine, machine.counting({7}).subSample(3, 0)), (Values{0, 3, 6}));
}

TEST(PoplarTensor, ReverseTurnsADimensionAround) {
  Machine machine;
  EXPECT_EQ(elements(machine, machine.counting({2, 3}).reverse(1)), (Values{2, 1, 0, 5, 4, 3}));
}

TEST(PoplarTensor, ExpandPutsOnesBeforeOriginalDimensions) {
  Machine machine;
  const Tensor t = machine.counting({2, 3});
  EXPECT_EQ(t.expand({0, 2, 2}).shape(), (std::vector<std::size_t>{1, 2, 3, 1, 1}));
  EXPECT_EQ(t.expand({1, 1}).shape(), (std::vector<std::size_t>{2, 1, 1, 3}));
  expect_throw<index_error>([&] { t.expand({3}); }, "no place 3");
  expect_throw<poplar_error>([&] { t.squeeze({1}); }, "dimension 1 is not one");
}

TEST(PoplarTensor, ReinterpretKeepsTheBits) {
  Machine machine;
  const Tensor t = machine.variable(FLOAT, {2});
  machine.graph.setInitialValue<float>(t, {1.0f, -2.0f});
  Tensor bits = machine.variable(UNSIGNED_INT, {2});
  EXPECT_EQ(machine.run<unsigned>(Copy(t.reinterpret(UNSIGNED_INT), bits), bits),
            (std::vector<unsigned>{0x3f800000u, 0xc0000000u}));
  expect_throw<poplar_error>([&] { t.reinterpret(HALF); }, "not of the size");
}

TEST(PoplarTensor, RegionsFollowTheVariable) {
  Machine machine;
  const Tensor t = machine.counting({3, 4});
  EXPECT_EQ(t.slice(1, 3, 1).getContiguousRegions(), (std::vector<Interval>{{0, 2}, {2, 4}, {4, 6}}));
  EXPECT_EQ(t.getContiguousRegions(), (std::vector<Interval>{{0, 12}}));
  EXPECT_EQ(t.transpose().getVarRegions().size(), 12u);
  EXPECT_TRUE(t[1].isContiguous());
  EXPECT_FALSE(t.slice(0, 2, 1).isContiguous());
}

TEST(PoplarTensor, RegionsAreWrittenALineEach) {
  Machine m;
  const Tensor t = m.variable(INT, {2, 3}, "t");
  std::ostringstream out;
  t[1].reverse(0).slice(0, 2).outputRegions(out);
  EXPECT_EQ(out.str(), "variable 0 [5,6)\nvariable 0 [4,5)\n");
}

TEST(PoplarTensor, IntersectionIsOfElements) {
  Machine machine;
  const Tensor t = machine.counting({4, 4}), other = machine.counting({4});
  EXPECT_TRUE(t[1].intersectsWith(t.transpose()[2]));
  EXPECT_FALSE(t.slice(0, 2, 1).intersectsWith(t.slice(2, 4, 1)));
  EXPECT_FALSE(t.intersectsWith(other));
}

TEST(PoplarTensor, WhatLiesOutsideIsAnIndexErrorThatNamesTheTensor) {
  Machine machine;
  const Tensor t = machine.counting({2, 3}, "weights");
  expect_throw<index_error>([&] { t[2]; }, "weights{2,3}");
  expect_throw<index_error>([&] { t.slice(0, 4, 1); }, "slice [0, 4) lies outside dimension 1");
  expect_throw<index_error>([&] { t.slice(2, 1); }, "slice [2, 1)");
  expect_throw<index_error>([&] { t.slice(0, 1, 2); }, "no dimension 2");
  expect_throw<index_error>([&] { t.dim(2); }, "no dimension 2");
  expect_throw<index_error>([&] { t.reverse(2); }, "no dimension 2");
  expect_throw<index_error>([&] { t.broadcast(2, 5); }, "no dimension 5");
  expect_throw<poplar_error>([&] { t.reshape({7}); }, "weights");
  expect_throw<poplar_error>([&] { t.dimShuffle({0, 0}); }, "not a permutation");
  expect_throw<poplar_error>([&] { Tensor().shape(); }, "not there");
}

TEST(PoplarTensor, ConcatNeedsEqualTypesAndOtherExtents) {
  Machine machine;
  const Tensor t = machine.counting({2, 3}), f = machine.variable(FLOAT, {2, 3}),
               s = machine.counting({3, 3});
  expect_throw<type_error>([&] { concat(t, f); }, "float");
  expect_throw<poplar_error>([&] { concat(t, s, 1); }, "does not go with");
  EXPECT_EQ(concat(t, s).dim(0), 5u);
  EXPECT_EQ(append(t, t[0]).dim(0), 3u);
  EXPECT_EQ(append(t, t.slice(0, 1, 1), 1).dim(1), 4u);
}

TEST(PoplarTensor, OutlivesItsGraph) {
  Tensor kept;
  {
    Machine machine;
    kept = machine.counting({4}, "kept");
  }
  EXPECT_EQ(kept.slice(1, 3).getVarStr(), "kept");
}

TEST(PoplarTensor, ANumberIsInEveryInterval) {
  Machine machine;
  Tensor one = machine.counting({1}, "one"), two = machine.counting({2}, "two");
  const std::vector<Interval> intervals = {{0, 1}, {3, 5}};
  const std::vector<Tensor> parts = one.slices(intervals);
  EXPECT_EQ(parts[0].numElements(), 1u);
  EXPECT_EQ(parts[1].shape(), (std::vector<std::size_t>{2}));
  EXPECT_EQ(machine.run(Sequence(), parts[1]), (std::vector<int>{0, 0}));
  expect_throw<index_error>([&] { two.slices(intervals); }, "two");
  expect_throw<index_error>([&] { one.slice(3, 5); }, "one");
  expect_throw<index_error>([&] { one.slices(intervals, 1); }, "one");
}
