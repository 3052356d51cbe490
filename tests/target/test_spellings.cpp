// What exporters write out: GELU as a formula, normalisations frozen to a product and a sum, PRelu. By the
// graph, the plan, and beside the reference evaluation of the model as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/target/cpu/passes/spellings.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using graph::Graph;
using op::Var;
using Body = std::function<Var(op::Builder&, Var)>;

const double root_two = std::numbers::sqrt2, root = std::sqrt(2 / std::numbers::pi);

target::GraphAtBatch around(Shape sample, const Body& body) {
  return [=](std::int64_t batch) {
    Graph graph("model");
    op::Builder b(graph);
    std::vector<std::int64_t> extents = sample.extents();
    extents.insert(extents.begin(), batch);
    b.output("y", body(b, b.input("x", ElementType::f32, Shape(extents))));
    return graph;
  };
}

std::int64_t count(const Graph& graph, std::string_view op) {
  return std::ranges::count(graph.nodes(), op, &graph::Node::op);
}

void expect_as_reference(const target::GraphAtBatch& model, const target::GraphAtBatch& changed,
                         double tolerance) {
  test::Runner expected("reference", model, {.batch = 3}), actual("cpu", changed, {.batch = 3});
  expected.run();
  actual.run();
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    test::expect_close(actual.outputs[i], expected.outputs[i], tolerance, "cpu");
}

struct Spelling {
  const char* name;
  std::function<Var(Var)> formula;
};

std::vector<Spelling> gelus() {
  const auto cubed = [](Var x) { return op::pow(x, 3); };
  return {
      {"erf, halved first", [](Var x) { return (x * 0.5) * (op::erf(x / root_two) + 1); }},
      {"erf, halved last", [](Var x) { return (x * (op::erf(x * (1 / root_two)) + 1)) * 0.5; }},
      {"erf, halved by a quotient", [](Var x) { return (op::erf(x / root_two) + 1) * x / 2; }},
      {"tanh of a power",
       [=](Var x) { return (0.5 * x) * (op::tanh((x + cubed(x) * 0.044715) * root) + 1); }},
      {"tanh of products",
       [](Var x) { return x * 0.5 * (op::tanh((x + 0.044715 * x * x * x) * 0.79788) + 1); }},
      {"of a product",
       [](Var x) {
         const Var y = x * 2;
         return (y * 0.5) * (op::erf(y / root_two) + 1);
       }},
  };
}

TEST(Spellings, GeluIsOneOperator) {
  for (const Spelling& spelling : gelus()) {
    SCOPED_TRACE(spelling.name);
    const auto model = around({5, 7}, [&](op::Builder&, Var x) { return spelling.formula(x); });
    const Graph graph = target::cpu::recognize_spellings(model(2));
    EXPECT_EQ(count(graph, "Gelu"), 1);
    EXPECT_EQ(count(graph, "Erf") + count(graph, "Tanh"), 0);
    expect_as_reference(
        model, [&](std::int64_t batch) { return target::cpu::recognize_spellings(model(batch)); }, 2e-5);
  }
}

TEST(Spellings, FormulasThatAreOthersStay) {
  const std::vector<Spelling> others = {
      {"not halved", [](Var x) { return x * (op::erf(x / root_two) + 1); }},
      {"of twice x", [](Var x) { return x * 0.5 * (op::erf(x * root_two) + 1); }},
      {"of another", [](Var x) { return x * 0.5 * (op::erf(op::exp(x) / root_two) + 1); }},
      {"one too many", [](Var x) { return x * x * 0.5 * (op::erf(x / root_two) + 1); }},
      {"another sum", [](Var x) { return x * 0.5 * (op::erf(x / root_two) + 2); }},
      {"a square", [](Var x) { return x * 0.5 * (op::tanh((x + op::pow(x, 2) * 0.044715) * root) + 1); }},
      {"another constant",
       [](Var x) { return x * 0.5 * (op::tanh((x + op::pow(x, 3) * 0.0453) * root) + 1); }},
  };
  for (const Spelling& spelling : others) {
    const auto model = around({5, 7}, [&](op::Builder&, Var x) { return spelling.formula(x); });
    EXPECT_EQ(count(target::cpu::recognize_spellings(model(2)), "Gelu"), 0) << spelling.name;
  }
}

Var deviation(Var x, const std::vector<std::int64_t>& axes) { return x - op::reduce_mean(x, axes, true); }

// By name: x [batch, 5, 7] normalised over its last axis, or its last two.
std::vector<Spelling> norms() {
  const auto square = [](Var x) { return x * x; };
  const auto variance = [=](Var x, const std::vector<std::int64_t>& axes) {
    return op::reduce_mean(square(deviation(x, axes)), axes, true) + 1e-3;
  };
  return {
      {"quotient", [=](Var x) { return deviation(x, {-1}) / op::sqrt(variance(x, {-1})); }},
      {"power", [=](Var x) { return deviation(x, {-1}) * op::pow(variance(x, {-1}), -0.5); }},
      {"reciprocal", [=](Var x) { return op::reciprocal(op::sqrt(variance(x, {2}))) * deviation(x, {2}); }},
      {"root as a power", [=](Var x) { return deviation(x, {-1}) / op::pow(variance(x, {-1}), 0.5); }},
      {"square as a power",
       [=](Var x) {
         const Var d = deviation(x, {-1});
         return d / op::sqrt(op::reduce_mean(op::pow(d, 2), {-1}, true) + 1e-3);
       }},
      {"two axes",
       [=](Var x) {
         return deviation(x, {1, 2}) / op::sqrt(variance(x, {1, 2}));
       }},
  };
}

TEST(Spellings, LayerNormalizationIsOneOperator) {
  for (const Spelling& spelling : norms())
    for (const int parts : {0, 1, 2}) {
      SCOPED_TRACE(spelling.name);
      const bool two = std::string_view(spelling.name) == "two axes";
      const auto model = around({5, 7}, [&](op::Builder& b, Var x) {
        const Shape shape = two ? Shape{5, 7} : Shape{7};
        const auto parameter = [&](std::uint64_t seed) {
          return b.constant(test::random_tensor(ElementType::f32, shape, seed, 0.5));
        };
        Var y = spelling.formula(x);
        if (parts > 0) y = parameter(1) * y;
        return parts > 1 ? y + parameter(2) : y;
      });
      const Graph graph = target::cpu::recognize_spellings(model(2));
      EXPECT_EQ(count(graph, "LayerNormalization"), 1);
      EXPECT_EQ(static_cast<int>(graph.node_count()), 1);
      expect_as_reference(
          model, [&](std::int64_t batch) { return target::cpu::recognize_spellings(model(batch)); }, 2e-5);
    }
}

TEST(Spellings, NormsThatAreOthersStay) {
  const std::vector<Spelling> others = {
      {"not the last axis",
       [](Var x) {
         const Var d = deviation(x, {1});
         return d / op::sqrt(op::reduce_mean(d * d, {1}, true) + 1e-3);
       }},
      {"of two axes",
       [](Var x) {
         const Var d = deviation(x, {-1});
         return d / op::sqrt(op::reduce_mean(d * d, {1, 2}, true) + 1e-3);
       }},
      {"not centered", [](Var x) { return x / op::sqrt(op::reduce_mean(x * x, {-1}, true) + 1e-3); }},
      {"of the root's sum",
       [](Var x) {
         const Var d = deviation(x, {-1});
         return d / (op::sqrt(op::reduce_mean(d * d, {-1}, true)) + 1e-3);
       }},
      {"of another",
       [](Var x) {
         const Var d = deviation(x, {-1}), other = deviation(op::exp(x), {-1});
         return d / op::sqrt(op::reduce_mean(other * other, {-1}, true) + 1e-3);
       }},
      {"a cube",
       [](Var x) {
         const Var d = deviation(x, {-1});
         return d / op::sqrt(op::reduce_mean(op::pow(d, 3), {-1}, true) + 1e-3);
       }},
  };
  for (const Spelling& spelling : others) {
    const auto model = around({5, 7}, [&](op::Builder&, Var x) { return spelling.formula(x); });
    EXPECT_EQ(count(target::cpu::recognize_spellings(model(2)), "LayerNormalization"), 0) << spelling.name;
  }
}

// A convolution of 3 to 6 channels, then what `body` makes of it.
target::GraphAtBatch behind_convolution(bool biased, const Body& body) {
  return around({3, 6, 6}, [=](op::Builder& b, Var x) {
    const auto random = [&](const Shape& shape, std::uint64_t seed) {
      return b.constant(test::random_tensor(ElementType::f32, shape, seed, 0.5));
    };
    const Var weights = random({6, 3, 3, 3}, 4);
    const Var bias = biased ? random({6}, 5) : Var();
    return body(b, b.node1("Conv", {x, weights, bias}));
  });
}

Var channels(op::Builder& b, const Shape& shape, std::uint64_t seed) {
  return b.constant(test::random_tensor(ElementType::f32, shape, seed, 0.5));
}

TEST(FrozenNormalisations, GoIntoTheConvolution) {
  const std::vector<std::pair<const char*, Body>> bodies = {
      {"one value per channel",
       [](op::Builder& b, Var y) {
         return y * channels(b, {1, 6, 1, 1}, 6) + channels(b, {6, 1, 1}, 7);
       }},
      {"one for all", [](op::Builder&, Var y) { return 0.25 * y + 2; }},
  };
  for (const bool biased : {false, true})
    for (const auto& [name, body] : bodies) {
      SCOPED_TRACE(name);
      const auto model = behind_convolution(biased, body);
      const Graph graph = target::cpu::fold_normalizations(model(3));
      // The product has gone into the weights, the sum is left to the epilogue.
      const graph::Node& last = graph.nodes().back();
      EXPECT_EQ(last.op, "Add");
      const auto made_by_convolution = [&](graph::ValueId id) {
        return graph.value(id).kind == graph::ValueKind::computed &&
               graph.node(graph.value(id).producer).op == "Conv";
      };
      EXPECT_TRUE(std::ranges::any_of(last.inputs, made_by_convolution));
      expect_as_reference(model, model, 1e-5);
    }
}

TEST(FrozenNormalisations, OtherFactorsStay) {
  const std::vector<std::pair<const char*, Body>> bodies = {
      {"a value a place",
       [](op::Builder& b, Var y) {
         return y * channels(b, {4, 4}, 6);
       }},
      {"a value a sample",
       [](op::Builder& b, Var y) {
         return y * channels(b, {3, 1, 1, 1}, 6);
       }},
      {"of the data", [](op::Builder&, Var y) { return y * op::sigmoid(y); }},
      {"read twice",
       [](op::Builder& b, Var y) {
         return op::sum(std::vector{y * channels(b, {6, 1, 1}, 6), y});
       }},
  };
  for (const auto& [name, body] : bodies) {
    const auto model = behind_convolution(false, body);
    EXPECT_EQ(count(target::cpu::fold_normalizations(model(3)), "Mul"), 1) << name;
  }
}

TEST(Slopes, AreInstructionsOfAVectorProgram) {
  const auto model = around({6, 4, 4}, [](op::Builder& b, Var x) {
    return op::prelu(x, channels(b, {6, 1, 1}, 8));
  });
  expect_as_reference(model, model, 1e-6);
  test::Runner runner("cpu", model, {.batch = 3});
  for (const target::PlanStep& step : runner.executable->summary().steps)
    EXPECT_EQ(step.kernel.find("reference"), std::string::npos) << step.op << ": " << step.kernel;
}

// A half of a tensor, and one whose lines lie across: copied where the kernel wants its lines, not evaluated.
TEST(Lines, OfPartsOfTensorsAreNormalisedByTheKernel) {
  const auto normalized = [](op::Builder& b, Var x) {
    return b.node1("LayerNormalization", {x, channels(b, {4}, 9), channels(b, {4}, 10)});
  };
  const std::vector<std::pair<const char*, Body>> bodies = {
      {"half",
       [&](op::Builder& b, Var x) {
         return normalized(b, op::split(op::relu(x), -1, {4, 2})[0]);
       }},
      {"turned", [&](op::Builder& b, Var x) {
         return op::transpose(normalized(b, op::transpose(op::slice(x, {0}, {4}, {1}), {0, 2, 1})),
                              {0, 2, 1});
       }}};
  for (const auto& [name, body] : bodies) {
    SCOPED_TRACE(name);
    const auto model = around({5, 6}, body);
    expect_as_reference(model, model, 1e-5);
    test::Runner runner("cpu", model, {.batch = 3});
    for (const target::PlanStep& step : runner.executable->summary().steps)
      EXPECT_EQ(step.kernel.find("reference"), std::string::npos) << step.op << ": " << step.kernel;
  }
}

}  // namespace
}  // namespace superstep
