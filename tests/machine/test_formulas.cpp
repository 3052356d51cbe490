// Closed forms against integers worked out by hand, and against check values that the vendor prints.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::machine::ipu {
namespace {

Hardware gc200() { return hardware_of(find_machine("gc200")); }

// Sixth tutorial of the vendor's examples: a matrix-vector product of 10,000 x 1,000 in f32, over all splits.
struct Split {
  std::int64_t cost = 0, split = 0;
};
Split tutorial(const Hardware& h, bool worst) {
  const std::int64_t rows = 10000, columns = 1000;
  Split found{worst ? 0 : std::int64_t{1} << 60, 0};
  for (std::int64_t s = 1; s < columns; ++s) {
    const std::int64_t v = std::max<std::int64_t>(ceil_div(rows * s, h.tiles), 1);
    const std::int64_t dot = 5 + (ceil_div(columns, s) + 1) / 2;
    const std::int64_t compute = ceil_div(v, h.workers) * h.workers * dot;
    const std::int64_t exchange = ceil_div(v, rows) * ceil_div(columns, s) * 4 / h.exchange_rate;
    const std::int64_t r = std::max<std::int64_t>(ceil_div(rows, h.tiles), 1);
    const std::int64_t reduce = ceil_div(r, h.workers) * h.workers * (5 + (s + 1) / 2);
    const std::int64_t cost = compute + exchange + reduce + r * s * 4 / h.exchange_rate;
    if (worst ? cost > found.cost : cost < found.cost) found = {cost, s};
  }
  return found;
}

TEST(CheckValues, TheTutorialsCostsComeOutExactly) {
  EXPECT_EQ(tutorial(gc200(), true).cost, 53807);
  EXPECT_EQ(tutorial(gc200(), false).cost, 3996);
  EXPECT_EQ(tutorial(gc200(), false).split, 7);
  const Hardware gc2 = hardware_of(find_machine("gc2"));
  EXPECT_EQ(tutorial(gc2, true).cost, 64373);
  EXPECT_EQ(tutorial(gc2, false).cost, 4751);
  EXPECT_EQ(tutorial(gc2, false).split, 5);
}

TEST(CheckValues, OnlyTheseWorkersAndRatesGiveThem) {
  for (std::int64_t workers : {4, 5, 7, 8}) {
    Hardware other = gc200();
    other.workers = workers;
    EXPECT_NE(tutorial(other, true).cost, 53807) << workers;
  }
  for (std::int64_t rate : {2, 3, 5, 6, 8}) {
    Hardware other = gc200();
    other.exchange_rate = rate;
    EXPECT_NE(tutorial(other, true).cost, 53807) << rate;
  }
}

TEST(CheckValues, PeaksOfTheDataSheets) {
  const auto peak = [](const char* id, ElementType element, ElementType partials) {
    const Hardware h = hardware_of(find_machine(id));
    return 2 * static_cast<double>(h.tiles) * h.clock * h.peak_macs(element, partials) * 1e-12;
  };
  EXPECT_NEAR(peak("gc200", ElementType::f16, ElementType::f16), 249.6, 0.1);
  EXPECT_NEAR(peak("bow", ElementType::f16, ElementType::f16), 348.6, 0.1);
  EXPECT_NEAR(peak("gc2", ElementType::f16, ElementType::f16), 124.5, 0.1);
  EXPECT_NEAR(peak("gc200", ElementType::f32, ElementType::f32), 62.4, 0.1);
  const Machine bow = find_machine("bow");
  const double loads =
      bow.value("tiles") * bow.value("clock") * (bow.value("load_rate") + bow.value("store_rate"));
  EXPECT_NEAR(loads * 1e-12, 65.4, 0.1);
}

TEST(Formulas, MatrixUnit1x1) {
  // 60 positions: 10 a worker, 38 + 4 * 7 - 10 = 56 cycles; inner max(336, 336 + 14) = 350; load 8 * 32 / 8 =
  // 32; two passes: 11 + 19 + 2 * (7 + 32 + 350) = 808; 50 + 6 * 10 + 12 + 808 = 930.
  EXPECT_EQ(amp_1x1_cycles(gc200(), {}, {1, 1, 1, 16, 16}, 60), 930);
  EXPECT_EQ(amp_1x1_worker_cycles({}, 0, false), 24);
  EXPECT_EQ(amp_1x1_worker_cycles({}, 10, true), 56);
  EXPECT_EQ(amp_1x1_worker_cycles({ElementType::f32, ElementType::f32, 8}, 10, false), 46 + 8 * 7);
}

TEST(Formulas, MatrixUnitNx1) {
  // 24 positions in rows of 6: 4 a worker, 17 - 6 + 34 + 4 = 49; a pass 32 + 15 + 3 + 6 * 49 + 9 = 353, two
  // of them; kernel 3 * (14 + 3 * (12 + 706)) = 6504; zeroing 6 * (32 + 14 - 9) = 222.
  EXPECT_EQ(amp_nx1_cycles(gc200(), {}, {1, 1, 1, 16, 16}, {3, 3, 1, 4, 6}),
            103 + 36 + 54 + 18 + 1 + 16 + 14 + 14 + 6504 + 222);
}

TEST(Formulas, MultiplyAccumulateVertices) {
  EXPECT_EQ(horizontal_dot_cycles(ElementType::f32, ElementType::f32, 6), 13);
  EXPECT_EQ(horizontal_dot_cycles(ElementType::f32, ElementType::f32, 7), 21);
  EXPECT_EQ(horizontal_dot_cycles(ElementType::f16, ElementType::f32, 8), 9);
  EXPECT_EQ(horizontal_dot_cycles(ElementType::f16, ElementType::f16, 8), 13);
  // 12 outputs: 2 a worker, 6 + 2 * 3 * (20 + 4) = 150; 4 + 12 + 32 + 24 + 900 + 10 + 9 = 991.
  EXPECT_EQ(vertical_mac_cycles(gc200(), 1, 1, 12, 3, 3), 1091);
  // One position a worker, one channel, 8 terms: 16 + 16 + 19 + 7 + 9 = 67; 63 + 54 + 23 + 15 + 10 + 402 =
  // 567.
  EXPECT_EQ(horizontal_mac_cycles(gc200(), ElementType::f16, ElementType::f32, {1, 1, 1, 1, 8, 1, 6, 1}),
            567);
}

// 96 outputs are 12 vectors of 8 halves, two a worker: 24 + 2 * (6 + 2 * 50). Of 16 three workers share each
// vector's 600 rows: 24 + 6 + 2 * 200, and one adds up: 24 + 6 + 2 * 3. Of one output 800 halves are 100
// vectors.
TEST(Formulas, Sums) {
  EXPECT_EQ(reduce_cycles(gc200(), 96, 50, ElementType::f16), 6 * (24 + 2 * 106));
  EXPECT_EQ(reduce_cycles(gc200(), 16, 600, ElementType::f16), 6 * 430 + 6 * 36);
  EXPECT_EQ(reduce_cycles(gc200(), 1, 800, ElementType::f16), 6 * (30 + 2 * 17) + 6 * (30 + 2 * 6));
}

// 205 elements are 35 a worker: 26 + 3 * 35. Four outputs of five are one of a worker each.
TEST(Formulas, PlacesOfTheLargest) {
  EXPECT_EQ(arg_cycles(gc200(), 1, 205), 9 + 6 * (26 + 3 * 35));
  EXPECT_EQ(arg_cycles(gc200(), 2, 205), 2 * (9 + 6 * (26 + 3 * 35)));
  EXPECT_EQ(arg_cycles(gc200(), 4, 5), 9 + 6 * (26 + 3 * 5));
}

// Rows of 8, one a worker: 10 + 8 - 1 = 17 cycles, twice over the inputs; 17 + 14 + 34 = 65 the first of
// three sub-kernels, 64 the others; weights of four groups 16 + 21 + 60 = 97; 44 + 3 * 116 + 13 + 390 + 768.
TEST(Formulas, WindowsInFoursOfColumns) {
  SlicWork work{
      .channels = 1, .conv_groups = 1, .kernel_rows = 3, .kernel_columns = 3, .rows = 6, .row_positions = 8};
  EXPECT_EQ(slic_cycles(gc200(), work), 1563);
  EXPECT_LT(slic_cycles(gc200(), work), vertical_mac_cycles(gc200(), 1, 1, 48, 3, 3) / 2);
  work.partials = ElementType::f16, work.units = 16;  // once over the inputs
  EXPECT_EQ(slic_cycles(gc200(), work), 44 + 348 + 13 + 6 * (17 + 11 + 18) + 12 * (17 + 10 + 18));
  work.stride = 2;  // 15 + 2 * 5
  EXPECT_EQ(slic_cycles(gc200(), work), 44 + 348 + 13 + 6 * (17 + 11 + 25) + 12 * (17 + 10 + 25));
}

TEST(Formulas, ALongerRowIsNotBelowTheLeastOfAShorter) {
  SlicWork work{.kernel_rows = 3, .kernel_columns = 3, .rows = 6, .row_positions = 4};
  const std::int64_t least = least_slic_cycles(gc200(), work);
  EXPECT_LT(least, slic_cycles(gc200(), work));
  work.row_positions = 5;
  EXPECT_LE(least, slic_cycles(gc200(), work));
}

TEST(Formulas, SmallVertices) {
  // 4096 elements: 683 a worker, 171 vectors of 4 at 2 + 2 cycles: 11 + 6 * (20 + 684).
  EXPECT_EQ(elementwise_cycles(gc200(), 4096, 4, 2, 20, 2), 4235);
  EXPECT_EQ(gather_worker_cycles(10, 200, 4), 16 + 10 * (19 + 150));
  EXPECT_EQ(cholesky_worker_cycles(16), 1 + 176 + 2448 + 3400);
  EXPECT_EQ(triangular_inverse_worker_cycles(16), 28 + 1008 + 2040 + 4080);
  EXPECT_EQ(exchange_cycles(10, 4), 3);
  EXPECT_EQ(exchange_cycles(0, 4), 0);
  // 24 outputs, 6 vectors of 128 bits, one a worker, 5 deep: 6 * (24 + 6 + 5).
  EXPECT_EQ(reduce_strided_cycles(gc200(), 24, 5, ElementType::f32), 210);
}

}  // namespace
}  // namespace superstep::machine::ipu
