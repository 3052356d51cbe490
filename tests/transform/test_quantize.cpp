// Products on bytes: what is taken, what stays, and how far the results are from f32.
#include "superstep/transform/precision/quantize.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

const std::string convolution =
    "input %x : f32[2,16,5,5]\n"
    "state %w : f32[8,16,3,3] = splat(0.1)\n"
    "state %b : f32[8] = splat(0.5)\n"
    "%y : f32[2,8,3,3] = Conv(%x, %w, %b)\n"
    "%z : f32[2,8,3,3] = Relu(%y)\n"
    "output \"z\" = %z";

Tensor evaluated(const graph::Graph& graph, const Tensor& x) {
  return op::evaluate(graph, std::vector{x}).outputs[0];
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i)
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  return largest;
}

double largest_of(const Tensor& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) largest = std::max(largest, std::abs(a.at(i)));
  return largest;
}

TEST(ByteScale, KeepsZeroExact) {
  for (const ValueRange& range : {ValueRange{-1, 3}, {0, 5}, {-2, 0}, {1, 2}, {-3, -1}, {-1e-3, 40}}) {
    const ByteScale scale = byte_scale(range);
    EXPECT_GE(scale.zero_point, 0);
    EXPECT_LE(scale.zero_point, 255);
    const double low = -scale.zero_point * static_cast<double>(scale.scale);
    EXPECT_LE(low, std::min(range.low, 0.0) + 0.51 * static_cast<double>(scale.scale));
    EXPECT_GE(low + 255 * static_cast<double>(scale.scale),
              std::max(range.high, 0.0) - 0.51 * static_cast<double>(scale.scale));
  }
}

TEST(ByteScale, OfNothingIsOne) {
  EXPECT_EQ(byte_scale({0, 0}).scale, 1.0f);
  EXPECT_EQ(byte_scale({0, 0}).zero_point, 0);
}

TEST(Quantize, TakesAConvolution) {
  const graph::Graph quantized = verified(quantize(splat_graph(convolution), {{"x", {-1, 1}}}));
  EXPECT_EQ(operators_of(quantized),
            (std::vector<std::string>{"QuantizeLinear", "ConvInteger", "DequantizeLinear", "Reshape", "Add",
                                      "Relu"}));
}

TEST(Quantize, StaysNearF32) {
  const graph::Graph model = with_random_states(splat_graph(convolution), 7);
  const Tensor x = random_tensor(ElementType::f32, {2, 16, 5, 5}, 3);
  const Tensor exact = evaluated(model, x), bytes = evaluated(quantize(model, {{"x", {-1, 1}}}), x);
  EXPECT_LT(largest_difference(exact, bytes), 0.02 * largest_of(exact));
  EXPECT_GT(largest_difference(exact, bytes), 0);
  // A range that cuts half of the values off must show.
  const Tensor cut = evaluated(quantize(model, {{"x", {-0.5, 0.5}}}), x);
  EXPECT_GT(largest_difference(exact, cut), 0.05 * largest_of(exact));
}

TEST(Quantize, TakesGemmAndMatMul) {
  const graph::Graph gemm = with_random_states(splat_graph("input %x : f32[3,16]\n"
                                                           "state %w : f32[8,16] = splat(0.1)\n"
                                                           "state %b : f32[8] = splat(0.1)\n"
                                                           "%y : f32[3,8] = Gemm(%x, %w, %b) {transB = 1}\n"
                                                           "output \"y\" = %y"),
                                               5);
  const graph::Graph matmul = with_random_states(splat_graph("input %x : f32[2,3,16]\n"
                                                             "state %w : f32[16,8] = splat(0.1)\n"
                                                             "%y : f32[2,3,8] = MatMul(%x, %w)\n"
                                                             "output \"y\" = %y"),
                                                 6);
  for (const graph::Graph& model : {gemm, matmul}) {
    const graph::Graph quantized = verified(quantize(model, {{"x", {-1, 1}}}));
    EXPECT_EQ(count_of(quantized, "MatMulInteger"), 1);
    const Tensor x = random_tensor(ElementType::f32, model.type(model.inputs()[0]).shape, 3);
    const Tensor exact = evaluated(model, x);
    EXPECT_LT(largest_difference(exact, evaluated(quantized, x)), 0.02 * largest_of(exact));
  }
}

TEST(Quantize, QuantizesAnActivationOnce) {
  const graph::Graph model = splat_graph(
      "input %x : f32[3,16]\n"
      "state %v : f32[16,8] = splat(0.1)\n"
      "state %w : f32[16,8] = splat(0.2)\n"
      "%a : f32[3,8] = MatMul(%x, %v)\n"
      "%b : f32[3,8] = MatMul(%x, %w)\n"
      "%y : f32[3,8] = Add(%a, %b)\n"
      "output \"y\" = %y");
  EXPECT_EQ(values_to_calibrate(model).size(), 2u);  // x, and a, which the sum reads
  const graph::Graph quantized = quantize(model, {{"x", {-1, 1}}});
  EXPECT_EQ(count_of(quantized, "QuantizeLinear"), 1);
  EXPECT_EQ(count_of(quantized, "MatMulInteger"), 2);
}

// Once for both products that read them.
TEST(Quantize, FillsUpRowsThatAreNoMultipleOfFour) {
  for (const char* in : {"17", "18", "19"}) {
    const std::string rows = in;
    const graph::Graph model =
        with_random_states(splat_graph("input %x : f32[2,3," + rows + "]\nstate %w : f32[" + rows +
                                       ",8] = splat(0.1)\nstate %v : f32[" + rows +
                                       ",16] = splat(0.1)\n"
                                       "%y : f32[2,3,8] = MatMul(%x, %w)\n%z : f32[2,3,16] = MatMul(%x, %v)\n"
                                       "output \"y\" = %y\noutput \"z\" = %z"),
                           5);
    // A range whose zero is no byte of zero: what is filled up must not count.
    ValueRange range{-1, 3};
    range.means.assign(std::stoul(rows), 0);
    const graph::Graph quantized = verified(quantize(model, {{"x", range}}));
    EXPECT_EQ(count_of(quantized, "MatMulInteger"), 2);
    EXPECT_EQ(count_of(quantized, "QuantizeLinear"), 1);
    EXPECT_EQ(count_of(quantized, "Pad"), 1);
    const Tensor x = random_tensor(ElementType::f32, model.type(model.inputs()[0]).shape, 3);
    const Tensor exact = evaluated(model, x);
    EXPECT_LT(largest_difference(exact, evaluated(quantized, x)), 0.03 * largest_of(exact));
  }
}

TEST(Quantize, LeavesWhatDoesNotGain) {
  const std::string cases[] = {
      // few channels summed
      "input %x : f32[2,3,5,5]\nstate %w : f32[8,3,3,3] = splat(0.1)\n%y : f32[2,8,3,3] = Conv(%x, %w)\n",
      // few given
      "input %x : f32[2,16,5,5]\nstate %w : f32[2,16,3,3] = splat(0.1)\n%y : f32[2,2,3,3] = Conv(%x, %w)\n",
      // few summed, however they are filled up
      "input %x : f32[3,15]\nstate %w : f32[15,8] = splat(0.1)\n%y : f32[3,8] = MatMul(%x, %w)\n",
      // both operands are activations
      "input %x : f32[16,16]\n%y : f32[16,16] = MatMul(%x, %x)\n",
      // another type
      "input %x : f64[3,16]\nstate %w : f64[16,8] = splat(0.1)\n%y : f64[3,8] = MatMul(%x, %w)\n",
      // a factor
      "input %x : f32[3,16]\nstate %w : f32[16,8] = splat(0.1)\n%y : f32[3,8] = Gemm(%x, %w) {alpha = 0.5}\n",
  };
  for (const std::string& body : cases) {
    const graph::Graph model = splat_graph(body + "output \"y\" = %y");
    EXPECT_TRUE(values_to_calibrate(model).empty()) << body;
    const graph::Graph same = quantize(model, {{"x", {-1, 1}}});
    EXPECT_EQ(operators_of(same), operators_of(model)) << body;
  }
}

TEST(Quantize, LeavesWhatHasNoRange) {
  EXPECT_EQ(count_of(quantize(splat_graph(convolution), {}), "ConvInteger"), 0);
  EXPECT_EQ(count_of(quantize(splat_graph(convolution), {{"y", {-1, 1}}}), "ConvInteger"), 0);
}

TEST(Quantize, RefusesRangesThatAreNone) {
  for (const ValueRange& range : {ValueRange{1, -1}, {0, INFINITY}, {NAN, 1}}) {
    try {
      quantize(splat_graph(convolution), {{"x", range}});
      FAIL() << "took " << range.low << " to " << range.high;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "cannot be quantized"));
      EXPECT_TRUE(contains(error.what(), "%x"));
    }
  }
}

TEST(Quantize, SurvivesChannelsOfZeros) {
  graph::Graph model = splat_graph(convolution);  // every weight the same: then none at all
  model.set_data(model.states()[0], Tensor(ElementType::f32, {8, 16, 3, 3}));
  const Tensor x = random_tensor(ElementType::f32, {2, 16, 5, 5}, 3);
  EXPECT_EQ(largest_difference(evaluated(model, x), evaluated(quantize(model, {{"x", {-1, 1}}}), x)), 0);
}

// What a U-Net has at each level: a value that is pooled, and joined to what comes from below.
const std::string pooled_and_joined =
    "input %x : f32[2,16,6,6]\n"
    "state %w1 : f32[16,16,3,3] = splat(0.1)\n"
    "state %w2 : f32[16,16,3,3] = splat(0.1)\n"
    "state %w3 : f32[16,8,2,2] = splat(0.1)\n"
    "state %b3 : f32[8] = splat(0.3)\n"
    "state %w4 : f32[8,24,1,1] = splat(0.1)\n"
    "%a : f32[2,16,6,6] = Conv(%x, %w1) {pads = [1, 1, 1, 1]}\n"
    "%p : f32[2,16,3,3] = MaxPool(%a) {kernel_shape = [2, 2], strides = [2, 2]}\n"
    "%c : f32[2,16,3,3] = Conv(%p, %w2) {pads = [1, 1, 1, 1]}\n"
    "%u : f32[2,8,6,6] = ConvTranspose(%c, %w3, %b3) {strides = [2, 2]}\n"
    "%j : f32[2,24,6,6] = Concat(%u, %a) {axis = 1}\n"
    "%y : f32[2,8,6,6] = Conv(%j, %w4)\n"
    "output \"y\" = %y";
const RangeTable ranges_of_levels{{"x", {-1, 1}}, {"p", {-6, 9}}, {"c", {-20, 20}}, {"j", {-12, 7}}};

std::vector<const graph::Node*> nodes_of(const graph::Graph& graph, std::string_view op) {
  std::vector<const graph::Node*> found;
  for (const graph::Node& node : graph.nodes())
    if (node.op == op) found.push_back(&node);
  return found;
}

TEST(Quantize, PoolsAndJoinsBytes) {
  const graph::Graph quantized = verified(quantize(splat_graph(pooled_and_joined), ranges_of_levels));
  for (const char* op : {"MaxPool", "Concat", "DepthToSpace"}) {
    ASSERT_EQ(count_of(quantized, op), 1) << op;
    const graph::Node& node = *nodes_of(quantized, op)[0];
    EXPECT_EQ(quantized.type(node.outputs[0]).element, ElementType::u8) << op;
  }
  EXPECT_EQ(count_of(quantized, "QuantizeLinear"), 4);  // x, a, what is joined to it, c
  EXPECT_EQ(count_of(quantized, "ConvInteger"), 4);
  EXPECT_EQ(count_of(quantized, "ConvTranspose"), 0);
}

// What the values span on this input.
RangeTable spanned(const graph::Graph& model, const Tensor& x) {
  graph::Graph observed = model;
  const std::vector<graph::ValueId> values = values_to_calibrate(model);
  for (graph::ValueId id : values) observed.add_output("range of " + model.value(id).name, id);
  const auto outputs = op::evaluate(observed, std::vector{x}).outputs;
  RangeTable ranges;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double largest = largest_of(outputs[model.outputs().size() + i]);
    ranges[model.value(values[i]).name] = {-largest, largest};
  }
  return ranges;
}

TEST(Quantize, PooledAndJoinedBytesStayNearF32) {
  const graph::Graph model = with_random_states(splat_graph(pooled_and_joined), 7);
  const Tensor x = random_tensor(ElementType::f32, {2, 16, 6, 6}, 3);
  RangeTable ranges = spanned(model, x);
  ASSERT_EQ(ranges.size(), 4u);
  const Tensor exact = evaluated(model, x), bytes = evaluated(quantize(model, ranges), x);
  EXPECT_LT(largest_difference(exact, bytes), 0.06 * largest_of(exact));
  for (auto& [name, range] : ranges) range = {0.1 * range.low, 0.1 * range.high};
  EXPECT_GT(largest_difference(exact, evaluated(quantize(model, ranges), x)), 0.2 * largest_of(exact));
}

TEST(Quantize, AFamilySpansWhatItsMembersSpan) {
  const graph::Graph quantized = quantize(splat_graph(pooled_and_joined), ranges_of_levels);
  // a, its pooled form and the joined one: -12 to 9.
  int wide = 0;
  for (const graph::Node* node : nodes_of(quantized, "QuantizeLinear"))
    wide += std::abs(quantized.value(node->inputs[1]).data.at(0) - 21.0 / 255) < 1e-6;
  EXPECT_EQ(wide, 2);
}

TEST(Quantize, NoFamilyTakesMoreThanABitFromAMember) {
  RangeTable ranges = ranges_of_levels;
  ranges["j"] = {-300, 300};
  const graph::Graph quantized = quantize(splat_graph(pooled_and_joined), ranges);
  ASSERT_EQ(count_of(quantized, "MaxPool"), 1);
  EXPECT_EQ(quantized.type(nodes_of(quantized, "MaxPool")[0]->outputs[0]).element, ElementType::f32);
  EXPECT_EQ(quantized.type(nodes_of(quantized, "Concat")[0]->outputs[0]).element, ElementType::u8);
}

TEST(Quantize, WhatIsReadInF32TooIsPooledThere) {
  const graph::Graph quantized =
      quantize(splat_graph(pooled_and_joined + "\noutput \"p\" = %p"), ranges_of_levels);
  ASSERT_EQ(count_of(quantized, "MaxPool"), 1);
  EXPECT_EQ(quantized.type(nodes_of(quantized, "MaxPool")[0]->outputs[0]).element, ElementType::f32);
  EXPECT_EQ(count_of(quantized, "QuantizeLinear"), 5);  // p by itself
}

// A residual block: %a is read by a product and by the sum with what comes of it; %s is the shortcut of
// another block, whose other product is later.
const std::string residual_blocks =
    "input %x : f32[2,16,5,5]\n"
    "state %w1 : f32[16,16,1,1] = splat(0.1)\n"
    "state %w2 : f32[16,16,1,1] = splat(0.1)\n"
    "state %w3 : f32[16,16,1,1] = splat(0.1)\n"
    "state %w4 : f32[16,16,1,1] = splat(0.1)\n"
    "state %w5 : f32[16,16,1,1] = splat(0.1)\n"
    "%a1 : f32[2,16,5,5] = Conv(%x, %w1)\n"
    "%a : f32[2,16,5,5] = Relu(%a1)\n"
    "%b1 : f32[2,16,5,5] = Conv(%a, %w2)\n"
    "%b2 : f32[2,16,5,5] = Add(%a, %b1)\n"
    "%b : f32[2,16,5,5] = Relu(%b2)\n"
    "%s : f32[2,16,5,5] = Conv(%b, %w3)\n"
    "%t : f32[2,16,5,5] = Conv(%b, %w4)\n"
    "%c : f32[2,16,5,5] = Add(%t, %s)\n"
    "%y : f32[2,16,5,5] = Conv(%c, %w5)\n"
    "output \"y\" = %y";

// Which input of each Add is made of bytes; -1: none.
std::vector<int> terms_in_bytes(const graph::Graph& quantized) {
  std::vector<int> terms;
  for (const graph::Node* sum : nodes_of(quantized, "Add")) {
    terms.push_back(-1);
    for (int k = 0; k < 2; ++k) {
      const graph::Value& term = quantized.value(sum->inputs[static_cast<std::size_t>(k)]);
      if (term.kind != graph::ValueKind::computed) continue;
      const graph::Node& producer = quantized.node(term.producer);
      const bool bytes = quantized.type(producer.inputs[0]).element == ElementType::u8;
      if (producer.op == "DequantizeLinear" && bytes) terms.back() = k;
    }
  }
  return terms;
}

TEST(Quantize, AddsBytesInResidualBlocks) {
  const graph::Graph model = with_random_states(splat_graph(residual_blocks), 7);
  const Tensor x = random_tensor(ElementType::f32, {2, 16, 5, 5}, 3);
  const RangeTable ranges = spanned(model, x);
  ASSERT_EQ(ranges.size(), 5u);  // x, a, b, c, and s, which no product reads
  EXPECT_TRUE(ranges.contains("s"));
  const graph::Graph quantized = quantize(model, ranges);
  EXPECT_EQ(terms_in_bytes(quantized), (std::vector<int>{0, 1}));
  EXPECT_EQ(count_of(quantized, "QuantizeLinear"), 5);
  const Tensor exact = evaluated(model, x), bytes = evaluated(quantized, x);
  EXPECT_LT(largest_difference(exact, bytes), 0.06 * largest_of(exact));
}

TEST(Quantize, AddsFloatsThatAreThereAnyway) {
  const graph::Graph model = splat_graph(residual_blocks + "\noutput \"a\" = %a");
  RangeTable ranges;
  for (const graph::ValueId id : values_to_calibrate(model)) ranges[model.value(id).name] = {-1, 1};
  EXPECT_EQ(terms_in_bytes(quantize(model, ranges)), (std::vector<int>{-1, 1}));  // %a is an output
  ranges.erase("s");
  EXPECT_EQ(terms_in_bytes(quantize(model, ranges)),
            (std::vector<int>{-1, -1}));  // nobody knows what s spans
}

TEST(Quantize, LeavesOverlappingWindowsTransposed) {
  const std::string model =
      "input %x : f32[2,16,3,3]\nstate %w : f32[16,8,3,3] = splat(0.1)\n"
      "%y : f32[2,8,7,7] = ConvTranspose(%x, %w) {strides = [2, 2]}\noutput \"y\" = %y";
  EXPECT_TRUE(values_to_calibrate(splat_graph(model)).empty());
  EXPECT_EQ(count_of(quantize(splat_graph(model), {{"x", {-1, 1}}}), "ConvTranspose"), 1);
}

TEST(Quantize, KeepsWhatItIsToldTo) {
  const graph::Graph model = splat_graph(pooled_and_joined);
  const graph::Graph none = quantize(model, ranges_of_levels, {.kept = {"a", "c", "u", "y"}});
  EXPECT_EQ(operators_of(none), operators_of(model));
  const graph::Graph one = quantize(model, ranges_of_levels, {.kept = {"a", "u", "y"}});
  EXPECT_EQ(count_of(one, "ConvInteger"), 1);
  EXPECT_EQ(count_of(one, "ConvTranspose"), 1);
}

}  // namespace
}  // namespace superstep::transform
