#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/window/pooling.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;

const char* const network = R"(input %x : f32[4,3]
state %w1 : f32[3,2] = [0.5, -0.25, 1.0, 0.125, -0.75, 0.3]
state %b1 : f32[2] = [0.1, 0.2]
state %w2 : f32[2,2] = [0.5, -0.25, 1.0, 0.7]
%h : f32[4,2] = Gemm(%x, %w1, %b1) "fc1"
%r : f32[4,2] = Relu(%h)
%s : f32[4,2] = Softmax(%r)
%y : f32[4,2] = MatMul(%s, %w2) "fc2"
output "y" = %y)";

std::vector<std::string> typed_operators(const Graph& graph) {
  std::vector<std::string> result;
  for (const graph::Node& node : graph.nodes())
    result.push_back(node.op + ":" + superstep::name_of(graph.type(node.outputs[0]).element));
  return result;
}

TEST(Autocast, ReducesProductsAndWhatFollowsThem) {
  const Graph graph = verified(autocast(graph_of(network), ElementType::bf16, {.least_width = 1}));
  EXPECT_EQ(
      typed_operators(graph),
      (std::vector<std::string>{"Cast:bf16", "Cast:bf16", "Cast:bf16", "Gemm:bf16", "Relu:bf16", "Cast:f32",
                                "Softmax:f32", "Cast:bf16", "Cast:bf16", "MatMul:bf16", "Cast:f32"}));
  EXPECT_EQ(graph.type(graph.find_output("y")).element, ElementType::f32);
  EXPECT_EQ(graph.type(graph.find_value("w1")).element, ElementType::f32);
  expect_same_results(graph_of(network), graph, 0.02);
}

// Behind a normalisation, which is f32. Where gradients will ask for the places of the maxima nothing
// changes.
TEST(Autocast, MaximaWhosePlacesNobodyReadsAreTakenInTheReducedType) {
  graph::Graph graph("pooled");
  op::Builder b(graph);
  const auto parameter = [&](const char* name, const Shape& shape) {
    return b.state(name, random_tensor(ElementType::f32, shape, 3));
  };
  const op::Var x = b.input("x", ElementType::f32, {2, 4, 4, 4});
  const op::Var y = op::conv(op::relu(x), parameter("w", {4, 4, 1, 1}));
  const op::MaxPooled pooled =
      op::max_pool(op::relu(op::exp(y)), {.kernel_shape = {2, 2}, .strides = {2, 2}});
  b.output("y", op::conv(pooled.values, parameter("v", {4, 4, 1, 1})));
  const auto type_of = [&](bool served) {
    const Graph narrow = verified(autocast(graph, ElementType::bf16, {.least_width = 1, .served = served}));
    for (const graph::Node& node : narrow.nodes())
      if (node.op == "MaxPool") return narrow.type(node.outputs[0]).element;
    return ElementType::u8;
  };
  EXPECT_EQ(type_of(false), ElementType::f32);
  EXPECT_EQ(type_of(true), ElementType::bf16);
}

// The network's products have a width of two: by default they are left alone.
TEST(Autocast, LeavesThinProductsInFullPrecision) {
  const Graph wide = graph_of(network);
  EXPECT_EQ(graph::to_text(autocast(wide, ElementType::bf16)), graph::to_text(wide));
}

// Of those that it would take, by the names of their results.
TEST(Autocast, LeavesProductsThatItIsToldTo) {
  const Graph wide = graph_of(network);
  ASSERT_EQ(products_to_narrow(wide, {.least_width = 1}).size(), 2u);
  EXPECT_TRUE(products_to_narrow(wide).empty());
  const Graph graph = verified(autocast(wide, ElementType::bf16, {.least_width = 1, .kept = {"h"}}));
  EXPECT_EQ(typed_operators(graph),
            (std::vector<std::string>{"Gemm:f32", "Relu:f32", "Softmax:f32", "Cast:bf16", "Cast:bf16",
                                      "MatMul:bf16", "Cast:f32"}));
  EXPECT_EQ(products_to_narrow(wide, {.least_width = 1, .kept = {"h"}}).size(), 1u);
  EXPECT_EQ(graph::to_text(autocast(wide, ElementType::bf16, {.least_width = 1, .kept = {"h", "y"}})),
            graph::to_text(wide));
}

TEST(Autocast, RoundsIndeed) {
  const Graph wide = graph_of(network), narrow = autocast(wide, ElementType::bf16, {.least_width = 1});
  const auto inputs = random_inputs(wide);
  const Tensor a = op::evaluate(wide, inputs).outputs[0], b = op::evaluate(narrow, inputs).outputs[0];
  double worst = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
  EXPECT_GT(worst, 1e-4);
}

TEST(Autocast, KeepsSumsOfWideValuesWide) {
  const Graph graph = verified(autocast(graph_of(R"(input %x : f32[2,2]
%p : f32[2,2] = MatMul(%x, %x)
%e : f32[2,2] = Exp(%p)
%a : f32[2,2] = Add(%p, %e)
%b : f32[2,2] = Add(%p, %p)
%c : f32[2,2] = Neg(%b)
output "a" = %a
output "c" = %c)"),
                                        ElementType::f16, {.least_width = 1}));
  EXPECT_EQ(graph.type(graph.find_value("a")).element, ElementType::f32);
  EXPECT_EQ(typed_operators(graph), (std::vector<std::string>{"Cast:f16", "MatMul:f16", "Cast:f32", "Exp:f32",
                                                              "Add:f32", "Add:f16", "Cast:f32", "Neg:f32"}));
}

// What lies between a normalisation and a product is rounded before it is stored, unless somebody else reads
// it.
TEST(Autocast, RoundsAheadOfProductsThatAreTheOnlyReaders) {
  const std::string before = R"(input %x : f32[2,2]
state %w : f32[2,2] = [1.0, 2.0, 3.0, 4.0]
%e : f32[2,2] = Exp(%x)
%r : f32[2,2] = Relu(%e)
%p : f32[2,2] = MatMul(%r, %w)
output "p" = %p)";
  const auto operators = [](const std::string& text) {
    return typed_operators(verified(autocast(graph_of(text.c_str()), ElementType::bf16, {.least_width = 1})));
  };
  EXPECT_EQ(operators(before), (std::vector<std::string>{"Exp:f32", "Cast:bf16", "Relu:bf16", "Cast:bf16",
                                                         "MatMul:bf16", "Cast:f32"}));
  EXPECT_EQ(
      operators(before + "\noutput \"r\" = %r"),
      (std::vector<std::string>{"Exp:f32", "Relu:f32", "Cast:bf16", "Cast:bf16", "MatMul:bf16", "Cast:f32"}));
}

TEST(Autocast, CastsEveryParameterOnce) {
  const Graph graph = autocast(graph_of(R"(input %x : f32[2,2]
state %w : f32[2,2] = [1.0, 2.0, 3.0, 4.0]
%p : f32[2,2] = MatMul(%x, %w)
%q : f32[2,2] = MatMul(%p, %w)
output "q" = %q)"),
                               ElementType::bf16, {.least_width = 1});
  EXPECT_EQ(count_of(graph, "Cast"), 3);  // x, w, q
}

// A depthwise convolution sums no channels: where nothing is trained it goes by those that it has.
TEST(Autocast, ReducesDepthwiseConvolutionsOnRequest) {
  const Graph wide = graph_of(R"(input %x : f32[1,16,3,3]
state %w : f32[16,1,1,1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
%d : f32[1,16,3,3] = Conv(%x, %w) {group = 16}
output "d" = %d)");
  EXPECT_EQ(typed_operators(autocast(wide, ElementType::bf16)), (std::vector<std::string>{"Conv:f32"}));
  EXPECT_EQ(typed_operators(verified(autocast(wide, ElementType::bf16, {.depthwise = true}))),
            (std::vector<std::string>{"Cast:bf16", "Cast:bf16", "Conv:bf16", "Cast:f32"}));
  EXPECT_EQ(typed_operators(autocast(wide, ElementType::bf16, {.least_width = 17, .depthwise = true})),
            (std::vector<std::string>{"Conv:f32"}));
}

TEST(Autocast, LeavesOtherTypesAndGraphsWithoutProductsAlone) {
  const Graph f64 = graph_of("input %x : f64[2,2]\n%y : f64[2,2] = MatMul(%x, %x)\noutput \"y\" = %y");
  EXPECT_EQ(typed_operators(autocast(f64, ElementType::bf16, {.least_width = 1})),
            (std::vector<std::string>{"MatMul:f64"}));
  const Graph plain = graph_of("input %x : f32[2]\n%y : f32[2] = Relu(%x)\noutput \"y\" = %y");
  EXPECT_EQ(graph::to_text(autocast(plain, ElementType::bf16, {.least_width = 1})), graph::to_text(plain));
}

TEST(Autocast, GradientsOfParametersAreWide) {
  Graph step = make_training_step(autocast(graph_of(network), ElementType::bf16, {.least_width = 1}), {}, {});
  run_pipeline(step, standard_passes());
  verified(step);
  int optimiser_nodes = 0;
  for (const graph::Node& node : step.nodes()) {
    if (node.op != "superstep.Adam") continue;
    ++optimiser_nodes;
    for (std::size_t i : {0u, 1u, 2u, 3u}) EXPECT_EQ(step.type(node.inputs[i]).element, ElementType::f32);
  }
  EXPECT_EQ(optimiser_nodes, 3);
  expect_same_results(make_training_step(graph_of(network), {}, {.kind = OptimizerKind::sgd}),
                      make_training_step(autocast(graph_of(network), ElementType::bf16, {.least_width = 1}),
                                         {}, {.kind = OptimizerKind::sgd}),
                      0.02);
}

TEST(Autocast, RefusesWhatIsNotReduced) {
  try {
    autocast(graph_of(network), ElementType::f64);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "reduced precision is bf16 or f16, not f64"));
  }
}

}  // namespace
}  // namespace superstep::transform
