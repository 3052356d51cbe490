// Planar convolutions against loops in f64 over random shapes, windows and parts, and bands of kernels
// against the kernels one after the other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "superstep/target/cpu/kernels/convolution/planar.h"
#include "superstep/target/cpu/kernels/core/bands.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "tests/cpu_kernels/support/assumed_cache.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/planes.h"

namespace superstep::kernels {
namespace {

// Small extents, any window that may go on by one column, up to three parts.
PlanarConvolution random_convolution(std::uint64_t seed) {
  RandomStream random(seed);
  PlanarConvolution c;
  c.batch = pick(random, 1, 3);
  const auto [window, height, width, rows, columns] = random_window(random);
  c.window = window;
  c.x = random_planes(random, pick(random, 1, 4), height, width, c.batch);
  for (std::int64_t parts = pick(random, 1, 3); parts > 0; --parts) {
    c.parts.push_back({random_planes(random, pick(random, 1, 4), rows, columns, c.batch), {}});
    Epilogue& epilogue = c.parts.back().epilogue;
    if (random.below(2)) epilogue.bias();
    if (random.below(3) == 0) epilogue.add();
    if (random.below(3) == 0) epilogue.subtract();
    if (random.below(3) == 0) epilogue.activate(Activation::leaky_relu, 0.25f);
  }
  return c;
}

// What a run of such a kernel reads and writes.
struct Problem {
  explicit Problem(const PlanarConvolution& convolution, std::uint64_t seed)
      : c(convolution), x(planes_buffer(c.x, c.batch, c.x.type)) {
    x.fill_random(seed);
    inputs.push_back(x.data());
    for (const auto& part : c.parts) {
      add(GuardedBuffer(ElementType::f32, part.y.channels * c.x.channels * c.window.height * c.window.width),
          ++seed);
      for (const EpilogueStep& step : part.epilogue.steps) {
        if (step.op == EpilogueOp::bias) add(GuardedBuffer(ElementType::f32, part.y.channels), ++seed);
        if (step.reads_tensor()) add(planes_buffer(part.y, c.batch, ElementType::f32), ++seed);
      }
      y.push_back(planes_buffer(part.y, c.batch, part.y.type));
    }
    for (GuardedBuffer& buffer : y) outputs.push_back(buffer.data());
  }
  void add(GuardedBuffer buffer, std::uint64_t seed) {
    buffer.fill_random(seed);
    inputs.push_back(buffer.data());
    operands.push_back(std::move(buffer));
  }

  Sum product(const GuardedBuffer& weights, std::int64_t n, std::int64_t o, std::int64_t row,
              std::int64_t column) const {
    const Window& w = c.window;
    Sum sum;
    for (std::int64_t i = 0; i < c.x.channels; ++i)
      for (std::int64_t kh = 0; kh < w.height; ++kh)
        for (std::int64_t kw = 0; kw < w.width; ++kw) {
          const std::int64_t h = row * w.stride_h + kh * w.dilation_h - w.pad_top,
                             v = column + kw * w.dilation_w - w.pad_left;
          if (h < 0 || h >= c.x.height || v < 0 || v >= c.x.width) continue;
          double weight = weights.get(((o * c.x.channels + i) * w.height + kh) * w.width + kw);
          if (c.x.type == ElementType::bf16)
            weight = static_cast<double>(static_cast<float>(bf16(static_cast<float>(weight))));
          sum.add(weight * x.get(address(c.x, n, i, h, v)));
        }
    return sum;
  }

  Sum expected(std::size_t part, std::size_t& operand, std::int64_t n, std::int64_t o, std::int64_t row,
               std::int64_t column) const {
    const auto& own = c.parts[part];
    Sum sum = product(operands[operand++], n, o, row, column);
    for (const EpilogueStep& step : own.epilogue.steps) {
      if (step.op == EpilogueOp::bias) sum.add(operands[operand++].get(o));
      if (step.op == EpilogueOp::add) sum.add(operands[operand++].get(address(own.y, n, o, row, column)));
      if (step.op == EpilogueOp::subtract)
        sum.add(-operands[operand++].get(address(own.y, n, o, row, column)));
      if (step.op == EpilogueOp::activate && sum.value < 0) sum.value *= 0.25;
    }
    return sum;
  }

  // Elements that are not what they should be, after adding `error` to all of them.
  int wrong(double error = 0) const {
    int count = 0;
    std::size_t first = 0, behind = 0;
    for (std::size_t part = 0; part < c.parts.size(); ++part, first = behind) {
      const Planes& p = c.parts[part].y;
      const double terms = static_cast<double>(c.x.channels * c.window.taps() + 2);
      for (std::int64_t n = 0; n < c.batch; ++n)
        for (std::int64_t o = 0; o < p.channels; ++o)
          for (std::int64_t h = 0; h < p.height; ++h)
            for (std::int64_t w = 0; w < p.width; ++w) {
              behind = first;
              const Sum sum = expected(part, behind, n, o, h, w);
              const double actual = y[part].get(address(p, n, o, h, w)) + error;
              count += !(std::abs(actual - sum.value) <= allowed_error(sum, terms, p.type));
            }
    }
    return count;
  }

  PlanarConvolution c;
  GuardedBuffer x;
  std::vector<GuardedBuffer> operands, y;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

TEST(Planar, AgreesWithLoopsWhateverTheShape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      Problem problem(random_convolution(seed), seed);
      run_kernel(*require_kernel(prepare(problem.c)), problem.inputs, problem.outputs);
      EXPECT_EQ(problem.wrong(), 0) << "seed " << seed;
    }
  });
}

// Without this a comparison that finds nothing would say nothing.
TEST(Planar, AWrongSumIsNoticed) {
  PlanarConvolution c = random_convolution(4);
  c.parts.resize(1);
  c.parts[0].y.type = ElementType::f32;
  Problem problem(c, 4);
  run_kernel(*require_kernel(prepare(c)), problem.inputs, problem.outputs);
  EXPECT_EQ(problem.wrong(), 0);
  const Planes& y = c.parts[0].y;
  EXPECT_EQ(problem.wrong(1e-3), c.batch * y.channels * y.height * y.width);
}

// Neighbours of the border that are not of the image would spoil what they were multiplied with.
TEST(Planar, ABorderIsZerosEvenBesideInfinity) {
  const Planes plane{.channels = 1, .height = 5, .width = 40, .sample = 200, .channel = 200, .row = 40};
  PlanarConvolution c{.batch = 1,
                      .x = plane,
                      .window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1},
                      .parts = {{plane, {}}}};
  Problem problem(c, 9);
  problem.x.set(2 * 40 + 39, std::numeric_limits<double>::infinity());  // the end of a row
  run_kernel(*require_kernel(prepare(c)), problem.inputs, problem.outputs);
  int infinite = 0;
  for (std::int64_t i = 0; i < 200; ++i) infinite += !std::isfinite(problem.y[0].get(i));
  EXPECT_EQ(infinite, 6);  // three rows, two columns
}

TEST(Planar, AnyRangesOfRowsGiveTheSameBits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem whole(random_convolution(seed), seed), ranges(random_convolution(seed), seed);
    const KernelPointer kernel = require_kernel(prepare(whole.c));
    run_kernel(*kernel, whole.inputs, whole.outputs);
    const auto& by_ranges = dynamic_cast<const RangeKernel&>(*kernel);
    RandomStream random(seed);
    GuardedBuffer scratch(ElementType::f32, static_cast<std::int64_t>(kernel->info().scratch_bytes / 4));
    for (std::int64_t begin = 0, end = 0; begin < by_ranges.units(); begin = end) {
      end = pick(random, begin + 1, by_ranges.units());
      scratch.fill_bits();
      by_ranges.run_range({ranges.inputs, ranges.outputs, scratch.data()}, {begin, end});
    }
    for (std::size_t part = 0; part < whole.y.size(); ++part)
      for (std::int64_t i = 0; i < whole.y[part].size(); ++i)
        ASSERT_TRUE(whole.y[part].get(i) == ranges.y[part].get(i) || std::isnan(whole.y[part].get(i)))
            << "seed " << seed;
  }
}

TEST(Planar, JoinedTheyMakeTheSame) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const PlanarConvolution all = random_convolution(seed);
    if (all.parts.size() < 2) continue;
    PlanarConvolution first = all, others = all;
    first.parts.resize(1);
    others.parts.erase(others.parts.begin());
    const auto both = joined(*require_kernel(prepare(first)), *require_kernel(prepare(others)));
    ASSERT_TRUE(both);
    Problem problem(*both, seed);
    run_kernel(*require_kernel(prepare(*both)), problem.inputs, problem.outputs);
    EXPECT_EQ(problem.wrong(), 0) << "seed " << seed;
    others.window.pad_left += 1;
    EXPECT_FALSE(joined(*require_kernel(prepare(first)), *require_kernel(prepare(others))));
  }
}

TEST(Planar, SaysWhyItRefuses) {
  PlanarConvolution c = random_convolution(1);
  const auto reason = [](const PlanarConvolution& refused) {
    const Prepared kernel = prepare(refused);
    return kernel ? std::string("none") : to_string(kernel.error());
  };
  EXPECT_EQ(reason(c), "none");
  PlanarConvolution strided = c;
  strided.window.stride_w = 2;
  EXPECT_EQ(reason(strided), "planes: the window goes on by more than a column");
  PlanarConvolution wide = c;
  wide.x.channels = 5;
  EXPECT_EQ(reason(wide), "planes: more than 4 channels");
  PlanarConvolution half = c;
  half.x.type = ElementType::f16;
  EXPECT_EQ(reason(half), "planes: planes must be f32 or bf16");
  PlanarConvolution none = c;
  none.parts.clear();
  EXPECT_EQ(reason(none), "planes: there is no result");
}

// Two planes of a plane, and the length of both at each position.
struct Edges {
  static constexpr std::int64_t batch = 2, height = 37, width = 500;

  Edges() {
    const Planes plane{.channels = 1,
                       .height = height,
                       .width = width,
                       .sample = height * width,
                       .channel = height * width,
                       .row = width};
    planar = std::dynamic_pointer_cast<const RangeKernel>(std::shared_ptr<Kernel>(require_kernel(
        prepare(PlanarConvolution{.batch = batch,
                                  .x = plane,
                                  .window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1},
                                  .parts = {{plane, {}}, {plane, {}}}}))));
    VectorProgram program({batch, height, width});
    const VectorProgram::Strides line{height * width, width, 1};
    const auto x = program.input(ElementType::f32, line), y = program.input(ElementType::f32, line);
    program.store(
        program.unary(VectorOp::sqrt, program.binary(VectorOp::add, program.unary(VectorOp::square, x),
                                                     program.unary(VectorOp::square, y))),
        ElementType::f32, line);
    length = std::dynamic_pointer_cast<const RangeKernel>(
        std::shared_ptr<Kernel>(require_kernel(prepare(program))));
  }

  std::shared_ptr<const RangeKernel> planar, length;
};

TEST(Bands, AreTheKernelsOneAfterTheOther) {
  const AssumedCache cache(512 << 10);
  for_each_instruction_set([] {
    const Edges edges;
    ASSERT_EQ(edges.length->units(), Edges::batch * Edges::height * Edges::width);
    const std::int64_t pixels = Edges::batch * Edges::height * Edges::width;
    GuardedBuffer x(ElementType::f32, pixels), w1(ElementType::f32, 9), w2(ElementType::f32, 9);
    x.fill_random(1), w1.fill_random(2), w2.fill_random(3);
    std::vector<GuardedBuffer> made;
    for (int i = 0; i < 6; ++i) made.emplace_back(ElementType::f32, pixels).fill_bits();
    run_kernel(*edges.planar, {x.data(), w1.data(), w2.data()}, {made[0].data(), made[1].data()});
    run_kernel(*edges.length, {made[0].data(), made[1].data()}, {made[2].data()});
    const KernelPointer banded = require_kernel(prepare(Bands{{edges.planar, edges.length}}));
    EXPECT_GT(banded->info().parts, 1);
    run_kernel(*banded, {x.data(), w1.data(), w2.data(), made[3].data(), made[4].data()},
               {made[3].data(), made[4].data(), made[5].data()});
    int differing = 0;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::int64_t p = 0; p < pixels; ++p) differing += made[i].get(p) != made[i + 3].get(p);
    EXPECT_EQ(differing, 0);
  });
}

TEST(Bands, RefuseWhatIsNotOfAsManyPieces) {
  const Edges edges;
  VectorProgram program({7});
  program.store(program.input(ElementType::f32, {1}), ElementType::f32, {1});
  const auto other =
      std::dynamic_pointer_cast<const RangeKernel>(std::shared_ptr<Kernel>(require_kernel(prepare(program))));
  const Prepared bands = prepare(Bands{{edges.planar, other}});
  ASSERT_FALSE(bands);
  EXPECT_EQ(to_string(bands.error()), "bands: a kernel is not made of as many pieces as the first");
}

}  // namespace
}  // namespace superstep::kernels
