// The kernels of docs/add-a-kernel.md: another implementation of convolutions, which a compiled graph then
// runs, and an operation of its own with two implementations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/target.h"
#include "tests/contains.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {
namespace {

// [add-a-kernel]
// A depthwise convolution of a single tap: each channel times a number of its own.
class ScaledChannels : public Kernel {
 public:
  explicit ScaledChannels(const Convolution& c) : Kernel(info_of(c)), x_(c.x), y_(c.y) {}

  void run(const Arguments& arguments) const override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    const auto* weights = static_cast<const float*>(arguments.inputs[1]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t row = 0; row < x_.height; ++row)
      for (std::int64_t column = 0; column < x_.columns(); ++column) {
        const float* from = x + row * x_.row_stride + column * x_.column_stride;
        float* to = y + row * y_.row_stride + column * y_.column_stride;
        for (std::int64_t channel = 0; channel < x_.channels; ++channel)
          to[channel] = weights[channel] * from[channel];
      }
  }

 private:
  static KernelInfo info_of(const Convolution& c) {
    const auto elements = static_cast<double>(c.x.element_count());
    return {.name = "convolution, scaled channels",
            .flops = elements,
            .bytes = 8 * elements,
            .inputs = 2,
            .outputs = 1,
            .weights = WeightLayout::taps_channels};
  }

  Image x_, y_;
};

Prepared prepare_scaled_channels(const Convolution& c) {
  const auto refused = [](std::string reason) { return refuse("scaled channels", std::move(reason)); };
  if (std::string fault = fault_of(c); !fault.empty()) return refused(fault);
  if (c.groups != c.x.channels || c.groups != c.y.channels) return refused("channels are mixed");
  if (!c.window.is_pointwise() || c.x.positions() != c.y.positions())
    return refused("the window is no single tap");
  if (c.x.type != ElementType::f32 || c.y.type != ElementType::f32) return refused("images are not f32");
  if (c.accumulate || !c.epilogue.steps.empty()) return refused("something follows");
  return std::make_unique<ScaledChannels>(c);
}

extern constinit const Implementation<Convolution> scaled_channels{"scaled channels",
                                                                   prepare_scaled_channels};
// [end]

// ---- what the line in the list does: graphs that are compiled run it ---------------------------------

graph::Graph scaled_images(std::int64_t batch) {
  graph::Graph graph("scaled");
  op::Builder builder(graph);
  const op::Var x = builder.input("x", ElementType::f32, {batch, 6, 5, 7});
  const op::Var weights = builder.input("w", ElementType::f32, {6, 1, 1, 1});
  builder.output("y", builder.node1("Conv", {x, weights}, {{"group", std::int64_t{6}}}));
  return graph;
}

struct ScaledRun {
  Tensor y;
  std::string kernels;  // of all steps
};

ScaledRun run_scaled(const char* where) {
  const auto executable = target::find_target(where).compile(scaled_images, {.batch = 3, .threads = 1});
  std::vector<Tensor> inputs;
  for (const auto& port : executable->inputs()) {
    Tensor& tensor = inputs.emplace_back(port.type.element, port.type.shape);
    RandomStream random(inputs.size());
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, random.uniform() - 0.5);
  }
  std::vector<Tensor> outputs{Tensor(ElementType::f32, {3, 6, 5, 7})};
  executable->run(inputs, outputs);
  ScaledRun result{outputs[0], {}};
  for (const auto& step : executable->summary().steps) result.kernels += step.kernel + "; ";
  return result;
}

TEST(AddAKernel, ItsLineInTheListIsAllThatACompilerNeeds) {
  const ScaledRun expected = run_scaled("reference"), before = run_scaled("cpu");
  EXPECT_FALSE(contains(before.kernels, "scaled channels"));
  const AddedImplementation added(convolution_forward(), scaled_channels);
  const ScaledRun after = run_scaled("cpu");
  EXPECT_TRUE(contains(after.kernels, "convolution, scaled channels")) << after.kernels;
  for (std::int64_t i = 0; i < expected.y.element_count(); ++i) {
    ASSERT_EQ(after.y.at(i), before.y.at(i));
    ASSERT_NEAR(after.y.at(i), expected.y.at(i), 1e-7);
  }
}

TEST(AddAKernel, IsGoneFromTheListWhenTheTrialIsOver) {
  const std::size_t count = convolution_forward().all().size();
  {
    const AddedImplementation added(convolution_forward(), scaled_channels);
    EXPECT_EQ(convolution_forward().all().front().name, std::string("scaled channels"));
  }
  EXPECT_EQ(convolution_forward().all().size(), count);
  EXPECT_FALSE(convolution_forward().prepare(Convolution{}, "scaled channels").has_value());
}

// A kernel that refuses is passed over, with its reason.
TEST(AddAKernel, ARefusalIsSaid) {
  const AddedImplementation added(convolution_forward(), scaled_channels);
  const Prepared kernel = convolution_forward().prepare(dense_layer(2, 3, 4));
  ASSERT_TRUE(kernel.has_value());
  EXPECT_EQ(to_string((*kernel)->info().refused.at(0)), "scaled channels: channels are mixed");
}

// [add-a-kernel]
// y[r] = the sum over i of x[r][i]^2; row r starts at r * stride. Slots: inputs x; outputs y. f32.
struct SquaredNorm {
  std::int64_t rows = 1, length = 1;
  std::int64_t stride = 1;  // elements from a row to the next
};

using RowSum = float (*)(const float* x, std::int64_t length);

float sum_in_order(const float* x, std::int64_t length) {
  float sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += x[i] * x[i];
  return sum;
}

// Eight sums side by side, which the compiler keeps in one vector register.
float sum_in_eights(const float* x, std::int64_t length) {
  float sums[8] = {};
  for (std::int64_t i = 0; i < length; i += 8)
    for (std::int64_t lane = 0; lane < 8; ++lane) sums[lane] += x[i + lane] * x[i + lane];
  for (int half = 4; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

class SquaredNormKernel : public Kernel {
 public:
  SquaredNormKernel(const SquaredNorm& norm, const char* name, RowSum row_sum)
      : Kernel(info_of(norm, name)), norm_(norm), row_sum_(row_sum) {}

  void run(const Arguments& arguments) const override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t row = 0; row < norm_.rows; ++row)
      y[row] = row_sum_(x + row * norm_.stride, norm_.length);
  }

 private:
  static KernelInfo info_of(const SquaredNorm& norm, const char* name) {
    const auto elements = static_cast<double>(norm.rows * norm.length);
    return {.name = fmt::format("squared norm, {}", name),
            .flops = 2 * elements,
            .bytes = 4 * (elements + static_cast<double>(norm.rows)),
            .inputs = 1,
            .outputs = 1};
  }

  SquaredNorm norm_;
  RowSum row_sum_;
};

Prepared prepare_in_eights(const SquaredNorm& norm) {
  if (norm.length % 8 != 0)
    return refuse("eights", fmt::format("rows of {} elements are not a multiple of 8", norm.length));
  return std::make_unique<SquaredNormKernel>(norm, "eights", sum_in_eights);
}

Prepared prepare_in_order(const SquaredNorm& norm) {
  return std::make_unique<SquaredNormKernel>(norm, "in order", sum_in_order);
}

extern constinit const Implementation<SquaredNorm> in_eights{"eights", prepare_in_eights};
extern constinit const Implementation<SquaredNorm> in_order{"in order", prepare_in_order};

// Fastest first; the last one takes everything. Makes the function squared_norm().
SUPERSTEP_KERNELS(squared_norm, SquaredNorm, in_eights, in_order)
// [end]

// [add-a-kernel]
SquaredNorm random_norm(std::uint64_t seed) {
  RandomStream random(seed);
  SquaredNorm norm{.rows = static_cast<std::int64_t>(random.below(6)),
                   .length = static_cast<std::int64_t>(random.below(40))};
  norm.stride = norm.length + static_cast<std::int64_t>(random.below(3));
  return norm;
}

// Rows whose result differs from a sum in double by more than rounding, after adding `error` to it.
int wrong_rows(const SquaredNorm& norm, const Kernel& kernel, std::uint64_t seed, double error = 0) {
  GuardedBuffer x(ElementType::f32, norm.rows == 0 ? 0 : (norm.rows - 1) * norm.stride + norm.length);
  GuardedBuffer y(ElementType::f32, norm.rows);
  x.fill_random(seed);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  kernel.run({.inputs = inputs, .outputs = outputs});
  int wrong = 0;
  for (std::int64_t row = 0; row < norm.rows; ++row) {
    double expected = 0;
    for (std::int64_t i = 0; i < norm.length; ++i)
      expected += x.get(row * norm.stride + i) * x.get(row * norm.stride + i);
    const double allowed = 0x1p-24 * static_cast<double>(norm.length) * expected;
    wrong += std::abs(y.get(row) + error - expected) > allowed;
  }
  return wrong;
}

TEST(SquaredNorm, AgreesWithNaiveLoops) {
  for (const auto& implementation : squared_norm().all())
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const SquaredNorm norm = random_norm(seed);
      const Prepared kernel = implementation.prepare(norm);
      if (!kernel) continue;
      EXPECT_EQ(wrong_rows(norm, **kernel, seed), 0) << implementation.name << ", seed " << seed;
    }
}

TEST(SquaredNorm, AWrongSumIsNoticed) {
  const SquaredNorm norm{.rows = 3, .length = 16, .stride = 16};
  EXPECT_EQ(wrong_rows(norm, **squared_norm().prepare(norm), 1, 1e-3), 3);
}

TEST(SquaredNorm, SaysWhyTheFastOneRefused) {
  const Prepared kernel = squared_norm().prepare({.rows = 2, .length = 9, .stride = 9});
  EXPECT_EQ((*kernel)->info().name, "squared norm, in order");
  EXPECT_EQ(to_string((*kernel)->info().refused.at(0)), "eights: rows of 9 elements are not a multiple of 8");
}
// [end]

TEST(AddAKernel, TakesTheFastestThatServes) {
  const Prepared kernel = squared_norm().prepare({.rows = 2, .length = 24, .stride = 24});
  EXPECT_EQ((*kernel)->info().name, "squared norm, eights");
  EXPECT_TRUE((*kernel)->info().refused.empty());
  EXPECT_EQ((*kernel)->info().flops, 96);
  EXPECT_FALSE(squared_norm().prepare({}, "nines").has_value());
}

}  // namespace
}  // namespace superstep::kernels
