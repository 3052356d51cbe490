// Weights as bytes, and results that keep their means when weights are rounded.
#include "superstep/transform/precision/byte_weights.h"
#include "superstep/transform/precision/quantize.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

TEST(ByteWeights, StayWithinHalfAStep) {
  const Tensor stored = random_tensor(ElementType::f32, {12, 20}, 3);
  const ByteWeights weights = byte_weights(stored, {.out_in = true});
  ASSERT_EQ(weights.bytes.shape(), (Shape{20, 12}));
  ASSERT_EQ(weights.scales.size(), 12u);
  for (std::int64_t in = 0; in < 20; ++in)
    for (std::int64_t out = 0; out < 12; ++out) {
      const auto at = static_cast<std::size_t>(in * 12 + out);
      const double scale = static_cast<double>(weights.scales[at % 12]);
      EXPECT_NEAR(weights.bytes.at(in * 12 + out) * scale - stored.at(out * 20 + in), weights.excess[at],
                  1e-12);
      EXPECT_LE(std::abs(weights.excess[at]), 0.501 * scale);
    }
}

TEST(ByteWeights, SharesOfTapsCountWhatLiesInsideTheImage) {
  // Five columns, three taps, a column of padding on either side: the outer taps miss one position each.
  const graph::Graph model = splat_graph(
      "input %x : f32[1,4,1,5]\nstate %w : f32[4,4,1,3] = splat(0.1)\n"
      "%y : f32[1,4,1,5] = Conv(%x, %w) {pads = [0, 1, 0, 1]}\noutput \"y\" = %y");
  EXPECT_EQ(shares_of_taps(model.nodes()[0].attributes, {1, 4, 1, 5}, {4, 4, 1, 3}),
            (std::vector<double>{0.8, 1, 0.8}));
}

// A product of each kind, where what takes the excess off stands in another place.
struct Case {
  const char* name;
  std::string text;
  std::size_t more_nodes;  // than without means
};

const std::vector<Case> cases{
    {"own bias of a convolution in groups, with borders",
     "input %x : f32[4,32,5,5]\nstate %w : f32[16,16,3,3] = splat(0.1)\nstate %b : f32[16] = splat(0.1)\n"
     "%y : f32[4,16,3,3] = Conv(%x, %w, %b) {group = 2, pads = [1, 1, 1, 1], strides = [2, 2]}\n"
     "output \"y\" = %y",
     0},
    {"normalization behind a convolution",
     "input %x : f32[4,16,5,5]\nstate %w : f32[8,16,3,3] = splat(0.1)\nstate %s : f32[8] = splat(0.1)\n"
     "state %b : f32[8] = splat(0.1)\nstate %m : f32[8] = splat(0.1)\n"
     "constant %v : f32[8] = [1, 1, 1, 1, 1, 1, 1, 1]\n"
     "%p : f32[4,8,3,3] = Conv(%x, %w)\n"
     "%y : f32[4,8,3,3] = BatchNormalization(%p, %s, %b, %m, %v)\noutput \"y\" = %y",
     0},
    {"sum of a product and a bias",
     "input %x : f32[4,5,16]\nstate %w : f32[16,8] = splat(0.1)\nstate %b : f32[8] = splat(0.1)\n"
     "%p : f32[4,5,8] = MatMul(%x, %w)\n%y : f32[4,5,8] = Add(%b, %p)\noutput \"y\" = %y",
     0},
    {"bias of Gemm",
     "input %x : f32[20,16]\nstate %w : f32[8,16] = splat(0.1)\nstate %b : f32[8] = splat(0.1)\n"
     "%y : f32[20,8] = Gemm(%x, %w, %b) {transB = 1}\noutput \"y\" = %y",
     0},
    {"one bias for all channels of Gemm",
     "input %x : f32[20,16]\nstate %w : f32[16,8] = splat(0.1)\nstate %b : f32[1] = splat(0.1)\n"
     "%y : f32[20,8] = Gemm(%x, %w, %b)\noutput \"y\" = %y",
     1},
    {"nothing that adds a value per channel",
     "input %x : f32[4,5,16]\nstate %w : f32[16,8] = splat(0.1)\nstate %b : f32[5,8] = splat(0.1)\n"
     "%p : f32[4,5,8] = MatMul(%x, %w)\n%y : f32[4,5,8] = Add(%p, %b)\noutput \"y\" = %y",
     1},
    {"a convolution alone",
     "input %x : f32[4,16,5,5]\nstate %w : f32[8,16,1,1] = splat(0.1)\n"
     "%y : f32[4,8,5,5] = Conv(%x, %w)\noutput \"y\" = %y",
     2},  // with what gives the values a channel their shape
    {"a sum that others read, too",
     "input %x : f32[20,16]\nstate %w : f32[16,8] = splat(0.1)\nstate %b : f32[8] = splat(0.1)\n"
     "%p : f32[20,8] = MatMul(%x, %w)\n%y : f32[20,8] = Add(%p, %b)\noutput \"y\" = %y\noutput \"p\" = %p",
     1},
};

// Every channel a number of its own, the same at all positions: what rounding the weights adds is its mean.
Tensor by_channels(const Shape& shape, int axis) {
  Tensor x(ElementType::f32, shape);
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    const std::int64_t channel = i / inner % shape[axis];
    x.set(i, static_cast<double>(channel * 5 % 16) / 15);  // bytes of a range of 1 hold these exactly
  }
  return x;
}

// Of each channel of the first output, the mean difference between two graphs.
std::vector<double> mean_differences(const graph::Graph& a, const graph::Graph& b, const Tensor& x) {
  const Tensor of_a = op::evaluate(a, std::vector{x}).outputs[0],
               of_b = op::evaluate(b, std::vector{x}).outputs[0];
  const Shape& shape = of_a.shape();
  const bool image = shape.rank() == 4;
  const std::int64_t channels = image ? shape[1] : shape[shape.rank() - 1],
                     inner = image ? shape[2] * shape[3] : 1;
  std::vector<double> sums(static_cast<std::size_t>(channels), 0.0);
  for (std::int64_t i = 0; i < of_a.element_count(); ++i)
    sums[static_cast<std::size_t>(i / inner % channels)] += of_b.at(i) - of_a.at(i);
  for (double& sum : sums) sum *= static_cast<double>(channels) / static_cast<double>(of_a.element_count());
  return sums;
}

double largest(const std::vector<double>& values) {
  double found = 0;
  for (const double value : values) found = std::max(found, std::abs(value));
  return found;
}

TEST(ByteWeights, MeansStayWhatTheyAreWithoutRounding) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const graph::Graph model = with_random_states(splat_graph(one.text), 7);
    const graph::ValueId x = model.inputs()[0];
    const Shape& shape = model.type(x).shape;
    const int axis = channel_axis(model, x);
    EXPECT_EQ(axis, shape.rank() == 4 ? 1 : shape.rank() - 1);
    const Tensor values = by_channels(shape, axis);
    ValueRange range{0, 1};
    const graph::Graph plain = verified(quantize(model, {{"x", range}}));
    for (std::int64_t channel = 0; channel < shape[axis]; ++channel)
      range.means.push_back(static_cast<double>(channel * 5 % 16) / 15);
    const graph::Graph corrected = verified(quantize(model, {{"x", range}}));
    EXPECT_EQ(corrected.node_count(), plain.node_count() + one.more_nodes);
    const double before = largest(mean_differences(model, plain, values));
    EXPECT_GT(before, 1e-3);
    EXPECT_LT(largest(mean_differences(model, corrected, values)), 1e-5);
  }
}

TEST(ByteWeights, MeansOfAnotherNumberAreRefused) {
  const graph::Graph model = splat_graph(
      "input %x : f32[4,16]\nstate %w : f32[16,8] = splat(0.1)\n%y : f32[4,8] = MatMul(%x, %w)\noutput \"y\" "
      "= %y");
  ValueRange range{0, 1};
  range.means.assign(15, 0.5);
  try {
    quantize(model, {{"x", range}});
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("15 means for 16 channels"), std::string::npos) << error.what();
  }
}

// What is read as an image and as rows has its means along one of both axes.
TEST(ByteWeights, MeansAlongAnotherAxisAreNotTaken) {
  const graph::Graph model = with_random_states(
      splat_graph("input %x : f32[4,16,3,16]\nstate %w : f32[8,16,1,1] = splat(0.1)\nstate "
                  "%v : f32[16,8] = splat(0.1)\n"
                  "%y : f32[4,8,3,16] = Conv(%x, %w)\n%z : f32[4,16,3,8] = MatMul(%x, %v)\n"
                  "output \"y\" = %y\noutput \"z\" = %z"),
      7);
  ValueRange range{0, 1};
  range.means.assign(16, 0.5);
  const graph::Graph corrected = verified(quantize(model, {{"x", range}}));
  EXPECT_EQ(count_of(corrected, "Add"), 1);
}

}  // namespace
}  // namespace superstep::transform
