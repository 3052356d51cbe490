// Boxes, cells, turns, subscripts and operators, each beside its definition.
#include <numeric>
#include <set>

#include "superstep/base/random.h"
#include "superstep/openmp/place.h"
#include "superstep/openmp/reduce.h"
#include "tests/openmp/support.h"

namespace superstep::openmp {
namespace {

TEST(Box, RangesOfElementsAsBoxes) {
  const std::vector<std::int64_t> extents{3, 4, 5};
  for (std::int64_t begin = 0; begin <= 60; ++begin)
    for (std::int64_t end = begin; end <= 60; ++end) {
      const std::vector<Box> boxes = boxes_of(begin, end, extents);
      EXPECT_LE(boxes.size(), 5u);
      std::vector<std::int64_t> elements, expected(static_cast<std::size_t>(end - begin));
      for (const Box& box : boxes)
        for_each_row(box, extents, [&](std::int64_t first, std::int64_t length) {
          for (std::int64_t i = 0; i < length; ++i) elements.push_back(first + i);
        });
      std::iota(expected.begin(), expected.end(), begin);
      ASSERT_EQ(elements, expected) << begin << " to " << end;
    }
}

TEST(Turns, ARowIsItsTurns) {
  RandomStream random(3);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<int> row;
    while (row.size() < 60) {
      std::vector<int> body(1 + random.below(9));
      for (int& step : body) step = static_cast<int>(random.below(3));
      for (std::uint64_t turn = 1 + random.below(6); turn > 0; --turn)
        row.insert(row.end(), body.begin(), body.end());
    }
    std::vector<int> unrolled;
    for (const Turns& turns : find_turns(row))
      for (std::size_t turn = 0; turn < turns.count; ++turn)
        unrolled.insert(unrolled.end(), row.begin() + static_cast<std::ptrdiff_t>(turns.begin),
                        row.begin() + static_cast<std::ptrdiff_t>(turns.begin + turns.period));
    ASSERT_EQ(unrolled, row);
  }
}

TEST(Turns, ATimeLoopWithASwapIsOneLoop) {
  std::vector<int> row{7};  // the first step is another: it fetches all halos
  for (int i = 0; i < 500; ++i) row.insert(row.end(), {1, 2});
  const std::vector<Turns> turns = find_turns(row);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[1].period, 2u);
  EXPECT_EQ(turns[1].count, 500u);
}

// Iterations and elements find each other: every iteration has one tile, and the element that it writes lies
// there.
TEST(Cells, ArraysLieWhereTheirIterationsAre) {
  RandomStream random(5);
  for (int trial = 0; trial < 300; ++trial) {
    Region region;
    region.body = no_body;
    region.distributed = 2;
    for (int k = 0; k < 2; ++k) {
      const auto begin = static_cast<std::int64_t>(random.below(4));
      region.loops.push_back({begin, begin + 1 + static_cast<std::int64_t>(random.below(20))});
    }
    std::vector<Affine> subscripts;
    std::vector<std::int64_t> extents;
    const int first = static_cast<int>(random.below(2));
    for (const int loop : {first, 1 - first}) {
      const std::int64_t c = std::vector<std::int64_t>{1, -1, 2, -3}[random.below(4)];
      const Range range = region.loops[static_cast<std::size_t>(loop)];
      const std::int64_t low = c > 0 ? c * range.begin : c * (range.end - 1);
      const std::int64_t high = c > 0 ? c * (range.end - 1) : c * range.begin;
      const auto before = static_cast<std::int64_t>(random.below(3));
      subscripts.push_back(index(loop, before - low, c));
      extents.push_back(high - low + 1 + before + static_cast<std::int64_t>(random.below(3)));
    }
    region.arrays = {{"a", ElementType::f32, extents}};
    region.accesses = {writes(0, subscripts)};
    const bsp::Device device = machine(1 + static_cast<std::uint32_t>(random.below(40)));
    const Cells chosen = choose_cells(region, device);
    const Cells array = cells_of_array(region, region.accesses[0], chosen);
    const auto back = cells_of_iterations(region, region.accesses[0], array);
    ASSERT_TRUE(back.has_value());
    std::set<std::uint32_t> tiles;
    std::int64_t elements = 0;
    array.for_each([&](std::uint32_t tile, const Box& cell) {
      EXPECT_TRUE(tiles.insert(tile).second);
      EXPECT_LT(tile, device.num_tiles());
      elements += cell.volume();
    });
    EXPECT_EQ(elements, region.arrays[0].count());
    for (const Cells* cells : {&chosen, &*back}) {
      std::int64_t iterations = 0;
      cells->for_each([&](std::uint32_t tile, const Box& cell) {
        iterations += cell.volume();
        const Box written = footprint(region, region.accesses[0], cell);
        array.for_each_touching(written, [&](std::uint32_t owner, const Box&) { EXPECT_EQ(owner, tile); });
      });
      EXPECT_EQ(iterations, region.iterations().volume());
    }
  }
}

TEST(Cells, TheGridOfAStencilIsSquare) {
  Region region;
  region.body = no_body;
  region.distributed = 2;
  region.loops = {{1, 1025}, {1, 1025}};
  region.arrays = {{"u", ElementType::f32, {1026, 1026}}, {"v", ElementType::f32, {1026, 1026}}};
  region.accesses = {reads(0, {index(0, -1), index(1)}), reads(0, {index(0, 1), index(1)}),
                     reads(0, {index(0), index(1, -1)}), reads(0, {index(0), index(1, 1)}),
                     writes(1, {index(0), index(1)})};
  region.work = {.loads = 4, .stores = 1, .float_operations = 4};
  const Cells cells = choose_cells(region, machine_without_fragments(64));
  EXPECT_EQ(cells.count(), 64);
  EXPECT_EQ(cells.along(0), 8);
  EXPECT_EQ(cells.along(1), 8);
}

TEST(Subscripts, RowMajorNumbersBecomeRowsAndColumns) {
  const std::int64_t n = 40;
  Region region;
  region.body = no_body;
  region.distributed = 2;
  region.loops = {{1, 29}, {1, n - 1}};
  region.arrays = {{"u", ElementType::f32, {30 * n}}};
  const auto linear = [&](std::int64_t constant) { return Affine{constant, {n, 1}}; };
  region.accesses = {reads(0, {linear(-n)}), reads(0, {linear(-n + 1)}), reads(0, {linear(n - 1)}),
                     reads(0, {linear(0)})};
  split_linear_subscripts(region);
  EXPECT_EQ(region.arrays[0].extents, (std::vector<std::int64_t>{30, n}));
  const std::vector<std::pair<std::int64_t, std::int64_t>> constants{{-1, 0}, {-1, 1}, {1, -1}, {0, 0}};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    EXPECT_EQ(region.accesses[i].subscripts[0].constant, constants[i].first);
    EXPECT_EQ(region.accesses[i].subscripts[1].constant, constants[i].second);
  }
  // A row that is left: it stays one list of elements.
  region.arrays[0].extents = {30 * n};
  region.loops[1] = {0, n};
  region.accesses = {reads(0, {linear(-n - 1)})};
  split_linear_subscripts(region);
  EXPECT_EQ(region.arrays[0].extents, (std::vector<std::int64_t>{30 * n}));
}

TEST(Operators, NeutralElementsChangeNothing) {
  const Operator operators[] = {Operator::add,     Operator::multiply,    Operator::minimum,
                                Operator::maximum, Operator::bit_and,     Operator::bit_or,
                                Operator::bit_xor, Operator::logical_and, Operator::logical_or};
  for (const Operator op : operators)
    for (const ElementType type : all_element_types)
      dispatch(type, [&]<class T>() {
        const bool bits = op == Operator::bit_and || op == Operator::bit_or || op == Operator::bit_xor;
        T neutral, value;
        fill_neutral(op, type, &neutral, 1);
        if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
          value = T(1.0f);
        else
          value = T(1);
        T into = neutral;
        if (bits && is_floating(type)) {
          EXPECT_NE(error_of([&] { combine(op, type, &into, &value, 1); }), "");
          return;
        }
        combine(op, type, &into, &value, 1);
        EXPECT_TRUE(into == value) << openmp::name_of(op) << " " << superstep::name_of(type);
      });
}

}  // namespace
}  // namespace superstep::openmp
