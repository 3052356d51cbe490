// The text of programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/pjrt/stablehlo/program.h"
#include "superstep/target/pjrt/stablehlo/types.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/differentiate.h"
#include "tests/contains.h"
#include "tests/expect_error.h"

namespace superstep::target::stablehlo {
namespace {

int count_of(std::string_view text, std::string_view wanted) {
  int count = 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1))
    ++count;
  return count;
}

graph::Graph step() {
  graph::Graph graph("a step-by-step");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {2});
  const op::Var kept = b.state("kept", Tensor::scalar(3.0f));
  const op::Var moved = b.state("moved", Tensor::full(ElementType::f32, {2}, 1));
  b.update(moved, moved + x * kept);
  b.output("y", op::exp(x));
  return graph;
}

TEST(StableHlo, AProgramTakesInputsAndStatesAndGivesOutputsAndWhatChanges) {
  const Program program = write_program(step());
  EXPECT_EQ(
      program.text,
      "module @a_step_by_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<f32>, %arg2: tensor<2xf32> "
      "{tf.aliasing_output = 1 : i32}) -> (tensor<2xf32>, tensor<2xf32>) {\n"
      "    %0 = \"stablehlo.broadcast_in_dim\"(%arg1) {broadcast_dimensions = array<i64>} : (tensor<f32>) "
      "-> tensor<2xf32>\n"
      "    %1 = \"stablehlo.multiply\"(%arg0, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
      "    %2 = \"stablehlo.add\"(%arg2, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
      "    %3 = \"stablehlo.exponential\"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>\n"
      "    func.return %3, %2 : tensor<2xf32>, tensor<2xf32>\n"
      "  }\n"
      "}\n");
  ASSERT_EQ(program.changed.size(), 1u);
  EXPECT_EQ(step().value(program.changed[0]).name, "moved");
}

TEST(StableHlo, ConstantsAreWrittenExactly) {
  EXPECT_EQ(dense_text(Tensor::full(ElementType::f32, {2, 3}, 1.5)), "dense<0x3FC00000> : tensor<2x3xf32>");
  EXPECT_EQ(dense_text(Tensor::full(ElementType::bf16, {4}, -2)), "dense<-2.0> : tensor<4xbf16>");
  EXPECT_EQ(dense_text(Tensor::scalar(std::numeric_limits<float>::infinity())),
            "dense<0x7F800000> : tensor<f32>");
  EXPECT_EQ(dense_text(Tensor::scalar(-0.0f)), "dense<0x80000000> : tensor<f32>");
  EXPECT_EQ(dense_text(Tensor::scalar(std::numeric_limits<std::int64_t>::min())),
            "dense<-9223372036854775808> : tensor<i64>");
  EXPECT_EQ(dense_text(Tensor::from<std::int32_t>({2}, {1, -2})),
            "dense<\"0x01000000FEFFFFFF\"> : tensor<2xi32>");
  EXPECT_EQ(dense_text(Tensor::from<std::int64_t>({2, 2}, {0, 1, 1, 0}).converted(ElementType::boolean)),
            "dense<[[false, true], [true, false]]> : tensor<2x2xi1>");
  EXPECT_EQ(dense_text(Tensor(ElementType::u8, {0, 3})), "dense<> : tensor<0x3xui8>");
}

TEST(StableHlo, LargeConstantsMayComeAsArguments) {
  graph::Graph graph("constant");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {300});
  Tensor numbers(ElementType::f32, {300});
  for (std::int64_t i = 0; i < 300; ++i) numbers.set(i, static_cast<double>(i));
  b.output("y", x + b.constant(numbers));
  EXPECT_TRUE(write_program(graph).constants.empty());
  const Program program = write_program(graph, {.constants_as_arguments_above = 1000});
  EXPECT_EQ(program.constants.size(), 1u);
  EXPECT_TRUE(contains(program.text, "%arg1: tensor<300xf32>)"));
  EXPECT_FALSE(contains(program.text, "dense"));
}

// A gradient step of a recurrent layer over so many steps, as it is handed over.
std::string recurrent_program(const char* op, std::int64_t gates, std::int64_t steps, bool with_lengths) {
  graph::Graph graph("layer");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {steps, 2, 3});
  const op::Var w = b.state("w", Tensor(ElementType::f32, {1, gates * 4, 3}));
  const op::Var r = b.state("r", Tensor(ElementType::f32, {1, gates * 4, 4}));
  const op::Var lengths = with_lengths ? b.input("lengths", ElementType::i32, {2}) : op::Var();
  const op::Var inputs[] = {x, w, r, op::Var(), lengths};
  const op::Var y = b.node(op, inputs, {}, gates == 4 ? 3 : 2)[0];
  const op::Var wrt[] = {w, r}, cotangent = b.input("dy", ElementType::f32, y.shape());
  const auto gradients = transform::vjp(b, std::span(&y, 1), std::span(&cotangent, 1), wrt);
  b.output("dw", gradients[0]);
  b.output("dr", gradients[1]);
  return write_program(transform::run_passes(graph, program_passes())).text;
}

// A program is as long for a thousand steps as for ten: three loops, forwards, what Y does not say of the
// states again, and backwards. Y says all of an RNN and a GRU but where sequences end early.
TEST(StableHlo, RecurrentLayersAreLoops) {
  struct Layer {
    const char* op;
    std::int64_t gates;
    bool lengths;
    int loops;
  };
  for (const Layer& layer : {Layer{"LSTM", 4, false, 3}, Layer{"LSTM", 4, true, 3}, Layer{"GRU", 3, false, 2},
                             Layer{"GRU", 3, true, 3}, Layer{"RNN", 1, false, 2}, Layer{"RNN", 1, true, 3}}) {
    SCOPED_TRACE(std::string(layer.op) + (layer.lengths ? " with lengths" : ""));
    const std::string few = recurrent_program(layer.op, layer.gates, 10, layer.lengths),
                      many = recurrent_program(layer.op, layer.gates, 1000, layer.lengths);
    const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
    EXPECT_EQ(lines(few), lines(many));
    EXPECT_EQ(count_of(many, "stablehlo.while"), layer.loops);
    // One step is no loop.
    EXPECT_EQ(count_of(recurrent_program(layer.op, layer.gates, 1, layer.lengths), "stablehlo.while"), 0);
  }
}

// A second result that nobody reads is not computed: the largest alone, without their places.
TEST(StableHlo, ResultsThatNobodyReadsAreNotWritten) {
  const auto pooled = [](bool places) {
    graph::Graph graph("pool");
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f32, {1, 2, 4, 4});
    const op::Var inputs[] = {x};
    const std::vector<std::int64_t> two{2, 2};
    const auto found = b.node("MaxPool", inputs, {{"kernel_shape", two}, {"strides", two}}, 2);
    b.output("y", found[0]);
    if (places) b.output("places", found[1]);
    return write_program(graph).text;
  };
  EXPECT_EQ(count_of(pooled(false), "stablehlo.iota"), 0);
  EXPECT_GT(count_of(pooled(true), "stablehlo.iota"), 0);
}

// Two convolutions with one kernel, scaled by what follows from two states; `trained`: a run changes the
// kernel.
graph::Graph convolved(bool trained) {
  graph::Graph graph("convolved");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {1, 4, 8, 8});
  const op::Var kernel = b.state("kernel", Tensor::full(ElementType::f32, {4, 4, 3, 3}, 0.5));
  const op::Var variance = b.state("variance", Tensor::full(ElementType::f32, {1, 4, 1, 1}, 2));
  const op::ConvAttributes same{.pads = {1, 1, 1, 1}};
  const op::Var y = op::conv(op::conv(x, kernel, {}, same), kernel, {}, same) * op::exp(variance);
  b.output("y", y);
  if (trained) b.update(kernel, kernel * 0.5f);
  return graph;
}

// Compilers for processors order kernels [o, i, 0, 1] anew in each run, and compute again what follows from
// states that stay as they are.
TEST(StableHlo, WhatFollowsFromSettledStatesIsMadeOnceByAProgramOfItsOwn) {
  const Program program = write_program(convolved(false), {.prepared = true});
  EXPECT_EQ(count_of(program.text, "x[0, 1, i, o]->"), 2);
  EXPECT_EQ(count_of(program.text, "stablehlo.transpose"), 0);
  EXPECT_EQ(count_of(program.text, "stablehlo.exponential"), 0);
  EXPECT_TRUE(contains(program.text, "%prepared0: tensor<3x3x4x4xf32>, %prepared1: tensor<1x4x1x1xf32>)"));
  EXPECT_EQ(program.prepared.results, 2u);
  EXPECT_EQ(count_of(program.prepared.text, "stablehlo.transpose"), 1);
  EXPECT_EQ(count_of(program.prepared.text, "stablehlo.exponential"), 1);
  EXPECT_TRUE(contains(program.prepared.text,
                       "@main(%arg0: tensor<4x4x3x3xf32>, %arg1: tensor<1x4x1x1xf32>) -> "
                       "(tensor<3x3x4x4xf32>, tensor<1x4x1x1xf32>)"));
}

TEST(StableHlo, WhatARunChangesAndWhatIsLargerThanItsPartsIsNotPrepared) {
  const Program trained = write_program(convolved(true), {.prepared = true});
  EXPECT_EQ(count_of(trained.text, "x[o, i, 0, 1]->"), 2);
  EXPECT_EQ(trained.prepared.results, 1u);  // of the variance
  // Where nothing is asked to be prepared, programs are as they were.
  const Program whole = write_program(convolved(false));
  EXPECT_EQ(count_of(whole.text, "x[o, i, 0, 1]->"), 2);
  EXPECT_TRUE(whole.prepared.text.empty());
  graph::Graph graph("spread");
  op::Builder b(graph);
  const op::Var few = b.state("few", Tensor::full(ElementType::f32, {4, 1}, 1)),
                line = b.state("line", Tensor::full(ElementType::f32, {4}, 1));
  b.output("y", b.input("x", ElementType::f32, {4, 4}) * (few * line));
  EXPECT_TRUE(write_program(graph, {.prepared = true}).prepared.text.empty());
}

TEST(StableHlo, WhatIsNotLoweredIsRefusedByName) {
  graph::Graph graph("words");
  op::Builder b(graph);
  b.set_name("counter");
  const op::Var x = b.input("x", ElementType::i64, {4});
  b.output("y", b.node1("TfIdfVectorizer", {x},
                        {{"mode", std::string("TF")},
                         {"min_gram_length", std::int64_t{1}},
                         {"max_gram_length", std::int64_t{1}},
                         {"max_skip_count", std::int64_t{0}},
                         {"ngram_counts", std::vector<std::int64_t>{0}},
                         {"ngram_indexes", std::vector<std::int64_t>{0, 1}},
                         {"pool_int64s", std::vector<std::int64_t>{5, 6}}}));
  expect_error(ErrorCode::unsupported, {"'counter'", "TfIdfVectorizer", "groups of words", "--on cpu"},
               [&] { write_program(graph); });
}

}  // namespace
}  // namespace superstep::target::stablehlo
