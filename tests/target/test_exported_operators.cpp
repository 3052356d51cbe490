// What exported models have beside products and windows: trained and served by kernels alone, behind a
// convolution whose result lies as an image, with the reference's results.
#include <gtest/gtest.h>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/einsum.h"
#include "superstep/op/product/fourier.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/product/spectral.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/group_normalization.h"
#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/op/sequence/recurrent.h"
#include "superstep/op/window/sampling.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using op::Var;
using test::Runner;

Var parameter(Var like, const Shape& shape, const std::string& name = "p") {
  return like.builder().state(name, test::random_tensor(ElementType::f32, shape, 5, 0.3));
}

// i64 numbers below `most`, some of them counted from the end.
Var indices(Var like, const Shape& shape, std::int64_t most) {
  Tensor numbers(ElementType::i64, shape);
  for (std::int64_t i = 0; i < numbers.element_count(); ++i) {
    const std::int64_t index = i * 7 % most;
    numbers.set(i, static_cast<double>(i % 3 == 0 ? index - most : index));
  }
  return like.builder().constant(numbers);
}

Var einsum(const std::string& equation, std::initializer_list<Var> operands) {
  return op::einsum(equation, std::vector<Var>(operands));
}

// x is [batch, 6, 10, 12].
struct Operator {
  const char* name;
  Var (*of)(Var x);
};

const Operator operators[] = {
    {"einsum, channels",
     [](Var x) {
       return einsum("bchw,cd->bdhw", {x, parameter(x, {6, 5})});
     }},
    {"einsum, batch of two axes",
     [](Var x) {
       return einsum("bchw,bcvw->bchv", {x, op::sin(x)});
     }},
    {"einsum, three operands",
     [](Var x) {
       return einsum("bchw,cd,we->bdhe", {x, parameter(x, {6, 5}), parameter(x, {12, 4}, "q")});
     }},
    {"einsum, wide by narrow",
     [](Var x) {
       return einsum("wvh,bchw->bchv", {parameter(x, {12, 19, 10}), x});
     }},
    {"einsum, nothing summed",
     [](Var x) {
       return einsum("...hw,h->...wh", {x, parameter(x, {10})});
     }},
    {"gather, inner axis",
     [](Var x) {
       return op::gather(x, indices(x, {2, 4}, 10), 2);
     }},
    {"gather, last axis", [](Var x) { return op::gather(x, indices(x, {7}, 12), 3); }},
    {"gather_elements",
     [](Var x) {
       return op::gather_elements(x, indices(x, {x.shape()[0], 4, 10, 12}, 6), 1);
     }},
    {"gather_nd",
     [](Var x) {
       return op::gather_nd(x, indices(x, {x.shape()[0], 9, 2}, 6), 1);
     }},
    {"scatter_elements",
     [](Var x) {
       const Var rows = op::slice(x, {0}, {3}, {2});
       return op::scatter_elements(x, indices(x, rows.shape(), 10), rows * rows, 2, "add");
     }},
    {"gather_nd of products",
     [](Var x) {
       return op::gather_nd(x * x, indices(x, {x.shape()[0], 3, 1}, 6), 1);
     }},
    {"running sum", [](Var x) { return op::cumsum(x, 2, false, true); }},
    {"triangle", [](Var x) { return op::trilu(x, 1, false); }},
    {"tiles",
     [](Var x) {
       return op::tile(x, {1, 1, 2, 3});
     }},
    {"local response", [](Var x) { return op::local_response_normalization(x, 5, 0.1, 0.75, 1); }},
    {"reflection",
     [](Var x) {
       return op::pad(x, {0, 0, 2, 1, 0, 0, 1, 3}, 0, "reflect");
     }},
    {"edges",
     [](Var x) {
       return op::pad(x, {0, 0, 2, -1, 0, 0, 1, 3}, 0, "edge");
     }},
    {"norms", [](Var x) { return op::reduce_l2(x, {1}, true) + op::reduce_log_sum_exp(x, {1}, true); }},
    {"powers", [](Var x) { return op::pow(op::abs(x) + 0.5, 2.5) + op::pow(x * x + 1.0, -0.7); }},
    {"trigonometry", [](Var x) { return op::atan(op::tan(op::sin(x))) + op::sinh(op::cos(x)); }},
    {"activations", [](Var x) { return op::mish(x) + op::selu(x) + op::softsign(x); }},
    {"NaN to zero", [](Var x) { return op::where(op::is_nan(x), x * 0.0, x); }},
    {"spectrum", [](Var x) { return op::dft(op::unsqueeze(x, {4}), 2, false, true); }},
    {"samples",
     [](Var x) {
       const Var points = op::tanh(op::slice(x, {0}, {2}, {1}));
       return op::grid_sample(x, op::transpose(points, {0, 2, 3, 1}), {.padding = "border"});
     }},
    {"samples of what lies outside, too",
     [](Var x) {
       const Var points = op::transpose(op::slice(x, {0}, {2}, {1}), {0, 2, 3, 1});
       return op::grid_sample(x, points, {.align_corners = true}) +
              op::grid_sample(x, points * 2.0, {.padding = "reflection"});
     }},
    {"nearest samples of one channel",
     [](Var x) {
       const Var points = op::transpose(op::slice(x, {0}, {2}, {1}), {0, 2, 3, 1});
       const Var image = op::slice(x, {2}, {3}, {1});
       return op::grid_sample(image, points, {.mode = "nearest", .padding = "border"}) *
              op::grid_sample(image, op::tanh(points), {});
     }},
    {"normalized part of a wider tensor",
     [](Var x) {
       const Var part = op::slice(x, {3}, {9}, {3});
       return op::layer_normalization(part, parameter(x, {6}, "scale"), parameter(x, {6}, "shift"), -1);
     }},
    {"gated recurrence",
     [](Var x) {
       const Shape& s = x.shape();
       const Var sequence = op::transpose(op::reshape(x, {s[0], s[1], s[2] * s[3]}), {1, 0, 2});
       const Var states = op::gru(sequence, parameter(x, {1, 24, 120}), parameter(x, {1, 24, 8}, "r"),
                                  parameter(x, {1, 48}, "bias"), {}, {.linear_before_reset = true})
                              .y;
       return op::transpose(states, {2, 0, 1, 3});
     }},
    {"gated recurrence in panels",
     [](Var x) {
       const Shape& s = x.shape();
       const Var sequence = op::transpose(op::reshape(x, {s[0], s[1], s[2] * s[3]}), {1, 0, 2});
       const Var states = op::gru(sequence, parameter(x, {2, 48, 120}), parameter(x, {2, 48, 16}, "r"),
                                  parameter(x, {2, 96}, "bias"), {},
                                  {.direction = "bidirectional", .linear_before_reset = true})
                              .y;
       return op::transpose(states, {2, 0, 1, 3});
     }},
};

graph::Graph network(const Operator& item, std::int64_t batch) {
  graph::Graph graph(item.name);
  op::Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {batch, 6, 10, 12});
  const Var image = op::conv(x, parameter(x, {6, 6, 3, 3}, "w"), {}, {.pads = {1, 1, 1, 1}});
  b.output("y", item.of(image));
  return graph;
}

graph::Graph training_step(const Operator& item, std::int64_t batch) {
  return transform::make_training_step(network(item, batch), {}, {.kind = transform::OptimizerKind::sgd},
                                       {.model_outputs = true});
}

std::string left_to_the_reference(const target::Executable& executable) {
  std::string names;
  for (const target::PlanStep& step : executable.summary().steps)
    if (step.kernel == "reference evaluation") names += step.op + " ";
  return names;
}

void compare(const char* name, const target::GraphAtBatch& model, int threads) {
  Runner cpu("cpu", model, {.batch = 3, .threads = threads}, 1e-3f);
  Runner reference("reference", model, {.batch = 3}, 1e-3f);
  EXPECT_EQ("", left_to_the_reference(*cpu.executable)) << name;
  cpu.run(), reference.run();
  for (std::size_t i = 0; i < cpu.outputs.size(); ++i)
    test::expect_close(cpu.outputs[i], reference.outputs[i], 1e-4, name);
  for (const std::string& state : reference.executable->state_names())
    test::expect_close(cpu.executable->state(state), reference.executable->state(state), 1e-4, name);
}

// y[b, c, t] = the sum over s of p[t, s, c] x[b, c, s], as long convolutions are written.
graph::Graph mixing(std::int64_t batch, bool of_parameters) {
  graph::Graph graph("mixing");
  op::Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {batch, 8, 40});
  const Var p = of_parameters ? parameter(x, {24, 40, 8}) : b.input("p", ElementType::f32, {24, 40, 8});
  b.output("y", einsum("tsc,bcs->bct", {p, x}));
  return graph;
}

bool turns_an_operand(const target::Executable& executable) {
  return std::ranges::any_of(executable.summary().steps, [](const target::PlanStep& step) {
    return step.part == target::PlanPart::body && step.op == "MatMul" &&
           step.kernel.find("b transposed") != std::string::npos;
  });
}

TEST(ExportedOperators, ParametersOfBatchedProductsAreTurnedOnce) {
  for (const bool of_parameters : {true, false}) {
    const auto model = [&](std::int64_t batch) { return mixing(batch, of_parameters); };
    Runner cpu("cpu", model, {.batch = 3, .micro_batch = 3, .threads = 2}),
        reference("reference", model, {.batch = 3, .micro_batch = 3});
    for (int run = 0; run < 2; ++run) {
      cpu.run(), reference.run();
      test::expect_close(cpu.outputs[0], reference.outputs[0], 1e-5, "mixing");
    }
    EXPECT_NE(turns_an_operand(*cpu.executable), of_parameters);
    if (!of_parameters) continue;
    // What was copied follows the parameter.
    const Tensor other = test::random_tensor(ElementType::f32, {24, 40, 8}, 11, 0.3);
    cpu.executable->set_state("p", other), reference.executable->set_state("p", other);
    cpu.run(), reference.run();
    test::expect_close(cpu.outputs[0], reference.outputs[0], 1e-5, "another parameter");
  }
}

// Rows of a softmax that are parts of longer ones, as `chunk` of a layer's result leaves them.
graph::Graph mixture(std::int64_t batch, const Shape& middle) {
  graph::Graph graph("mixture");
  op::Builder b(graph);
  std::vector<std::int64_t> extents{batch};
  for (const std::int64_t extent : middle) extents.push_back(extent);
  extents.push_back(8);
  const Var x = b.input("x", ElementType::f32, Shape(extents));
  const Var all = op::matmul(x, parameter(x, {8, 15}));
  const auto part = [&](std::int64_t from) { return op::slice(all, {from}, {from + 5}, {-1}); };
  b.output("y", op::log_softmax(part(0)) + op::softmax(part(5)) * part(10));
  return graph;
}

TEST(ExportedOperators, SoftmaxOfPartsIsOfKernels) {
  for (const Shape& middle : {Shape{}, Shape{7}, Shape{4, 3}})
    compare(
        "mixture", [&](std::int64_t batch) { return mixture(batch, middle); }, 2);
}

TEST(ExportedOperators, AreServedByKernelsAlone) {
  for (const Operator& item : operators)
    compare(
        item.name, [&](std::int64_t batch) { return network(item, batch); }, 2);
}

TEST(ExportedOperators, AreTrainedByKernelsAlone) {
  for (const Operator& item : operators)
    compare(
        item.name, [&](std::int64_t batch) { return training_step(item, batch); }, 3);
}

}  // namespace
}  // namespace superstep
