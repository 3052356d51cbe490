#include "superstep/op/elementwise/activation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/op/window/pooling.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

struct Case {
  const char* name;
  const char* body;      // of a graph that gives %y
  const char* expected;  // "axis 0", "constant", "reduced", or why it is mixed
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

std::string description(const BatchAxis& found) {
  switch (found.kind) {
    case BatchKind::constant: return "constant";
    case BatchKind::per_sample: return "axis " + std::to_string(found.axis);
    case BatchKind::reduced: return "reduced";
    case BatchKind::mixed: return found.why;
  }
  return "?";
}

class BatchAxes : public ::testing::TestWithParam<Case> {};

TEST_P(BatchAxes, Finds) {
  const Graph graph = graph_of(GetParam().body);
  EXPECT_EQ(description(find_batch_axes(graph)[graph.find_value("y").index()]), GetParam().expected);
}

#define X "input %x : f32[8,6]\n"
#define W "state %w : f32[6,2] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n"

INSTANTIATE_TEST_SUITE_P(
    Elementwise, BatchAxes,
    ::testing::Values(
        Case{"function", X "%y : f32[8,6] = Exp(%x)", "axis 0"},
        Case{"two inputs", X "input %z : f32[8,6]\n%y : f32[8,6] = Add(%x, %z)", "axis 0"},
        Case{"every pair", X "input %z : f32[6]\n%y : f32[8,6] = Add(%x, %z)",
             "combines every sample with every other"},
        Case{"a state for all",
             X "state %b : f32[6] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n%y : f32[8,6] = Add(%x, %b)", "axis 0"},
        Case{"a state a sample",
             X "state %b : f32[8,1] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n%y : f32[8,6] = Add(%x, %b)",
             "treats samples by their place in the batch"},
        Case{"the same constant a sample",
             X
             "constant %b : f32[8,1] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]\n%y : f32[8,6] = Add(%x, %b)",
             "axis 0"},
        Case{"a scalar input", X "input %s : f32[]\n%y : f32[8,6] = Mul(%x, %s)", "axis 0"},
        Case{"constants alone", "constant %b : f32[1] = [1.0]\n%y : f32[1] = Exp(%b)", "constant"}));

INSTANTIATE_TEST_SUITE_P(
    Products, BatchAxes,
    ::testing::Values(
        Case{"rows by weights", X W "%y : f32[8,2] = Gemm(%x, %w)", "axis 0"},
        Case{"transposed rows", "input %x : f32[6,8]\n" W "%y : f32[8,2] = Gemm(%x, %w) {transA = 1}",
             "sums samples with weights of their own"},
        Case{"a weight gradient", X "input %d : f32[8,2]\n%y : f32[6,2] = Gemm(%x, %d) {transA = 1}",
             "reduced"},
        Case{"samples by samples", X "input %z : f32[8,6]\n%y : f32[8,8] = Gemm(%x, %z) {transB = 1}",
             "multiplies every sample by every other"},
        Case{"attention",
             "input %x : f32[8,3,4]\n%t : f32[8,4,3] = Transpose(%x) {perm = [0, 2, 1]}\n"
             "%y : f32[8,3,3] = MatMul(%x, %t)",
             "axis 0"},
        Case{"attention over the batch", X "%t : f32[6,8] = Transpose(%x)\n%y : f32[8,8] = MatMul(%x, %t)",
             "multiplies every sample by every other"},
        Case{"convolution",
             "input %x : f32[8,1,3,3]\nstate %w : f32[1,1,1,1] = [1.0]\n"
             "%y : f32[8,1,3,3] = Conv(%x, %w)",
             "axis 0"},
        Case{"samples as kernels", "input %x : f32[8,1,3,3]\n%y : f32[8,8,1,1] = Conv(%x, %x)",
             "uses samples as the weights of other samples"}));

INSTANTIATE_TEST_SUITE_P(
    Layout, BatchAxes,
    ::testing::Values(
        Case{"transposed", X "%y : f32[6,8] = Transpose(%x)", "axis 1"},
        Case{"regrouped", X "constant %s : i64[3] = [8, 2, 3]\n%y : f32[8,2,3] = Reshape(%x, %s)", "axis 0"},
        Case{"flattened", X "constant %s : i64[1] = [48]\n%y : f32[48] = Reshape(%x, %s)",
             "axis 0"},  // six rows a sample
        Case{"unsqueezed", X "constant %a : i64[1] = [0]\n%y : f32[1,8,6] = Unsqueeze(%x, %a)", "axis 1"},
        Case{"joined along features", X "%y : f32[8,12] = Concat(%x, %x) {axis = 1}", "axis 0"},
        Case{"a state in front of each",
             X "state %s : f32[1,2] = [1.0, 2.0]\nconstant %e : i64[2] = [8, 2]\n"
               "%f : f32[8,2] = Expand(%s, %e)\n%y : f32[8,8] = Concat(%f, %x) {axis = 1}",
             "axis 0"},
        Case{"a state's row in front of each",
             X
             "state %s : f32[8,1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]\nconstant %e : i64[2] = [8, 2]\n"
             "%f : f32[8,2] = Expand(%s, %e)\n%y : f32[8,8] = Concat(%f, %x) {axis = 1}",
             "joins samples with something else"},
        Case{"joined along samples", X "%y : f32[16,6] = Concat(%x, %x) {axis = 0}",
             "picks or moves samples within the batch"},
        Case{"cut along features",
             X "constant %a : i64[1] = [0]\nconstant %b : i64[1] = [3]\nconstant %c : i64[1] = [1]\n"
               "%y : f32[8,3] = Slice(%x, %a, %b, %c)",
             "axis 0"},
        Case{"cut along samples",
             X "constant %a : i64[1] = [0]\nconstant %b : i64[1] = [3]\n%y : f32[3,6] = Slice(%x, %a, %b)",
             "picks or moves samples within the batch"},
        Case{"reversed samples",
             X "constant %a : i64[1] = [7]\nconstant %b : i64[1] = [-9]\nconstant %c : i64[1] = [0]\n"
               "constant %d : i64[1] = [-1]\n%y : f32[8,6] = Slice(%x, %a, %b, %c, %d)",
             "picks or moves samples within the batch"},
        Case{"padded pixels", X "constant %p : i64[4] = [0, 1, 0, 1]\n%y : f32[8,8] = Pad(%x, %p)", "axis 0"},
        Case{"shifted samples", X "constant %p : i64[4] = [1, 0, -1, 0]\n%y : f32[8,6] = Pad(%x, %p)",
             "picks or moves samples within the batch"},
        Case{"a table looked up", "input %x : i64[8,2]\n" W "%y : f32[8,2,2] = Gather(%w, %x)", "axis 0"},
        Case{"features picked", X "constant %i : i64[2] = [1, 2]\n%y : f32[8,2] = Gather(%x, %i) {axis = 1}",
             "axis 0"},
        Case{"samples picked", X "constant %i : i64[2] = [1, 2]\n%y : f32[2,6] = Gather(%x, %i)",
             "picks or moves samples within the batch"},
        Case{"its shape", X "%y : i64[2] = Shape(%x)", "constant"}));

INSTANTIATE_TEST_SUITE_P(
    Reductions, BatchAxes,
    ::testing::Values(
        Case{"mean of everything", X "%y : f32[] = ReduceMean(%x) {keepdims = 0}", "reduced"},
        Case{"sum of features",
             X "constant %a : i64[1] = [1]\n%y : f32[8] = ReduceSum(%x, %a) {keepdims = 0}", "axis 0"},
        Case{"sum before the samples",
             X "constant %a : i64[1] = [0]\n%t : f32[6,8] = Transpose(%x)\n"
               "%y : f32[8] = ReduceSum(%t, %a) {keepdims = 0}",
             "axis 0"},
        Case{"maximum over samples", X "constant %a : i64[1] = [0]\n%y : f32[1,6] = ReduceMax(%x, %a)",
             "is not linear over the batch"},
        Case{"softmax of features", X "%y : f32[8,6] = Softmax(%x)", "axis 0"},
        Case{"softmax of samples", X "%y : f32[8,6] = Softmax(%x) {axis = 0}", "normalizes over the batch"},
        Case{"scaled mean",
             X "constant %c : f32[] = [2.0]\n%m : f32[] = ReduceMean(%x) {keepdims = 0}\n"
               "%y : f32[] = Mul(%m, %c)",
             "reduced"},
        Case{"root of a mean", X "%m : f32[] = ReduceMean(%x) {keepdims = 0}\n%y : f32[] = Sqrt(%m)",
             "uses a sum over the batch in a way that is not linear"},
        Case{"minus the mean", X "%m : f32[] = ReduceMean(%x) {keepdims = 0}\n%y : f32[8,6] = Sub(%x, %m)",
             "gives a sum over the batch back to the samples"},
        Case{"layer normalization",
             X
             "state %s : f32[6] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]\n%y : f32[8,6] = LayerNormalization(%x, %s)",
             "axis 0"},
        Case{"what nobody knows",
             X "constant %i : i64[8,1] = [0, 0, 0, 0, 0, 0, 0, 0]\n%y : f32[8] = GatherND(%x, %i) "
               "{batch_dims = 1}",
             "is not known to keep samples apart"}));

INSTANTIATE_TEST_SUITE_P(
    Sequences, BatchAxes,
    ::testing::Values(
        Case{"a recurrent layer",
             "input %b : f32[8,5,1]\n%x : f32[5,8,1] = Transpose(%b) {perm = [1, 0, 2]}\n"
             "state %w : f32[1,4,1] = [1.0, 1.0, 1.0, 1.0]\nstate %r : f32[1,4,1] = [1.0, 1.0, 1.0, 1.0]\n"
             "%y : f32[5,1,8,1] = LSTM(%x, %w, %r) {hidden_size = 1}",
             "axis 2"},
        Case{"its last state",
             "input %b : f32[8,5,1]\n%x : f32[5,8,1] = Transpose(%b) {perm = [1, 0, 2]}\n"
             "state %w : f32[1,4,1] = [1.0, 1.0, 1.0, 1.0]\nstate %r : f32[1,4,1] = [1.0, 1.0, 1.0, 1.0]\n"
             "_, %y : f32[1,8,1] = LSTM(%x, %w, %r) {hidden_size = 1}",
             "axis 1"},
        Case{"samples taken for time",
             "input %x : f32[8,5,1]\nstate %w : f32[1,4,1] = [1.0, 1.0, 1.0, 1.0]\n"
             "state %r : f32[1,4,1] = [1.0, 1.0, 1.0, 1.0]\n%y : f32[8,1,5,1] = LSTM(%x, %w, %r) "
             "{hidden_size = 1}",
             "takes samples for steps of time"},
        Case{"running sum of features", X "constant %a : i64[] = [1]\n%y : f32[8,6] = CumSum(%x, %a)",
             "axis 0"},
        Case{"running sum of samples", X "constant %a : i64[] = [0]\n%y : f32[8,6] = CumSum(%x, %a)",
             "picks or moves samples within the batch"},
        Case{"triangle of pixels", "input %x : f32[8,3,3]\n%y : f32[8,3,3] = Trilu(%x)", "axis 0"}));

// --- whole training steps

// Convolution, pooling, attention and a dense layer.
Graph model(std::int64_t batch) {
  Graph graph;
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {batch, 1, 6, 6});
  const auto weight = [&](const char* name, const Shape& shape) {
    return b.state(name, random_tensor(ElementType::f32, shape, 3));
  };
  const Var h = op::leaky_relu(op::conv(x, weight("conv", {4, 1, 3, 3}), weight("bias", {4})));
  const Var pooled = op::max_pool(h, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  const Var rows = op::reshape(pooled, {batch, 4, 4});
  const Var mixed = op::matmul(rows, op::softmax(op::matmul(op::swap_axes(rows, 1, 2), rows)));
  const Var dropped = b.node1("Dropout", {op::flatten(mixed), b.scalar(ElementType::f32, 0.5)});
  b.output("y", op::gemm(dropped, weight("dense", {16, 3}), weight("dense_bias", {3})));
  return graph;
}

std::string verdict(const Graph& graph, const BatchAxisOptions& options = {}) {
  const Status status = splittable(verified(graph), options);
  return status ? "splittable" : status.error().what();
}

TEST(Splittable, TakesATrainingStepOfIndependentSamples) {
  for (LossKind loss : {LossKind::mse, LossKind::l1, LossKind::huber})
    EXPECT_EQ(verdict(make_training_step(model(4), {{LossTerm{.kind = loss}}}, {})), "splittable");
  EXPECT_EQ(verdict(make_training_step(model(4), {{LossTerm{.kind = LossKind::cross_entropy}}}, {})),
            "splittable");
}

TEST(Splittable, NamesWhatMixesSamples) {
  Graph graph;
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {4, 2});
  b.set_name("bn1");
  const Var in[] = {x, b.state("scale", Tensor::full(ElementType::f32, {2}, 1)),
                    b.state("bias", Tensor(ElementType::f32, {2})),
                    b.state("mean", Tensor(ElementType::f32, {2})),
                    b.state("variance", Tensor::full(ElementType::f32, {2}, 1))};
  b.output("y", b.node("BatchNormalization", in)[0]);
  EXPECT_EQ(verdict(graph), "splittable");
  EXPECT_TRUE(
      contains(verdict(make_training_step(graph, {}, {})),
               "node 'bn1' (BatchNormalization): the batch cannot be split: it normalizes by the mean and "
               "variance of the whole batch"));
}

TEST(Splittable, NamesAnUpdateFromSingleSamples) {
  EXPECT_TRUE(
      contains(verdict(graph_of(R"(input %x : f32[2]
state %s : f32[2] = [0.0, 0.0]
%u : f32[2] = Add(%s, %x) "gather" @update
update %s = %u)")),
               "node 'gather' (Add): the batch cannot be split: it updates state from single samples"));
}

TEST(Splittable, KnowsInputsThatAllSamplesShare) {
  const Graph graph = graph_of(
      "input %x : f32[4,3]\ninput %table : f32[5,3]\n"
      "%y : f32[4,5] = Gemm(%x, %table) {transB = 1}\noutput \"y\" = %y");
  EXPECT_TRUE(contains(verdict(graph), "multiplies every sample by every other"));
  EXPECT_EQ(verdict(graph, {.shared_inputs = {"table"}}), "splittable");
}

}  // namespace
}  // namespace superstep::transform
