#include <gtest/gtest.h>

#include <cmath>

#include "superstep/numerics/definition.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/numerics/numerics_target.h"
#include "superstep/transform/training/training_step.h"
#include "tests/expect_error.h"
#include "tests/target/run.h"

namespace superstep::test {
namespace {

using numerics::Arithmetic;
using target::numerics::Emulation;

target::CompileOptions options_at(std::int64_t batch, int threads = 2) {
  target::CompileOptions options;
  options.batch = batch, options.threads = threads;
  return options;
}

std::unique_ptr<Emulation> emulated(const graph::Graph& graph, const std::string& spec, int threads = 2) {
  return target::numerics::emulate([graph](std::int64_t) { return graph; }, options_at(1, threads),
                                   target::numerics::parse_spec(spec));
}

Tensor only_output(target::Executable& executable, const std::vector<Tensor>& inputs) {
  const auto& port = executable.outputs()[0];
  std::vector<Tensor> outputs{Tensor(port.type.element, port.type.shape)};
  executable.run(inputs, outputs);
  return outputs[0];
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i)
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  return largest;
}

TEST(Numerics, in_f32_is_what_the_definition_says) {
  for (const Case& each : models()) {
    const graph::Graph graph = each.model(3);
    const Tensor x = random_tensor(ElementType::f32, graph.type(graph.inputs()[0]).shape, 4);
    const auto reference =
        target::find_target("reference").compile([&](std::int64_t) { return graph; }, options_at(1));
    EXPECT_LT(largest_difference(only_output(*reference, {x}), only_output(*emulated(graph, "f32"), {x})),
              2e-5)
        << each.name;
  }
}

// One node of two operands that are inputs.
graph::Graph one_node(const Shape& a, const Shape& b, const std::function<op::Var(op::Var, op::Var)>& node) {
  graph::Graph graph("one");
  op::Builder builder(graph);
  const op::Var x = builder.input("a", ElementType::f32, a), y = builder.input("b", ElementType::f32, b);
  op::NameScope scope(builder, "node");
  builder.output("y", node(x, y));
  return graph;
}

// What a result is the sum of: pairs of elements of a and b, in order.
using Terms = std::vector<std::pair<std::int64_t, std::int64_t>>;
constexpr std::int64_t padding = -1;

// Of one result in the arithmetic, by the slow definition; random words are not asked for.
float defined(const Tensor& a, const Tensor& b, const Terms& terms, const Arithmetic& arithmetic) {
  std::vector<float> x, y;
  const auto rounded = [&](const Tensor& from, std::int64_t at) {
    const auto value = at == padding ? 0.0f : static_cast<float>(from.at(at));
    return numerics::narrowed(numerics::narrowed(value, arithmetic.results, 0), arithmetic.operands, 0);
  };
  for (const auto& [i, j] : terms) x.push_back(rounded(a, i)), y.push_back(rounded(b, j));
  return numerics::narrowed(numerics::summed(0, x, y, arithmetic, 0, {}), arithmetic.results, 0);
}

void expect_defined(const graph::Graph& graph, const std::function<Terms(std::int64_t result)>& terms_of) {
  const Tensor a = random_tensor(ElementType::f32, graph.type(graph.inputs()[0]).shape, 21);
  const Tensor b = random_tensor(ElementType::f32, graph.type(graph.inputs()[1]).shape, 22);
  for (const char* const name : {"16.16", "16.16:chunk=4,order=tree", "a100-tf32", "v100-f16", "sn10", "e4m3",
                                 "bf16:sums=bf16,sum_rounding=truncate,chunk=3", "f16:subnormals=flushed"}) {
    const Arithmetic arithmetic = target::numerics::parse_spec(name).base.arithmetic;
    const Tensor found = only_output(*emulated(graph, name), {a, b});
    int wrong = 0;
    for (std::int64_t i = 0; i < found.element_count(); ++i)
      wrong += static_cast<float>(found.at(i)) != defined(a, b, terms_of(i), arithmetic);
    EXPECT_EQ(0, wrong) << name << " of " << found.element_count();
  }
}

TEST(Numerics, adds_the_products_of_matrices_in_order) {
  constexpr std::int64_t m = 7, n = 70, k = 300;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const auto graph = one_node(
          ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n},
          [&](op::Var a, op::Var b) { return op::gemm(a, b, {}, {.transpose_a = ta, .transpose_b = tb}); });
      expect_defined(graph, [&](std::int64_t result) {
        Terms terms;
        const std::int64_t i = result / n, j = result % n;
        for (std::int64_t l = 0; l < k; ++l)
          terms.emplace_back(ta ? l * m + i : i * k + l, tb ? j * k + l : l * n + j);
        return terms;
      });
    }
}

TEST(Numerics, adds_the_products_of_stacked_matrices_in_order) {
  constexpr std::int64_t m = 5, n = 6, k = 20;
  const auto graph = one_node({2, 3, m, k}, {3, k, n}, [](op::Var a, op::Var b) { return op::matmul(a, b); });
  expect_defined(graph, [&](std::int64_t result) {
    Terms terms;
    const std::int64_t stack = result / (m * n), i = result / n % m, j = result % n;
    for (std::int64_t l = 0; l < k; ++l)
      terms.emplace_back((stack * m + i) * k + l, (stack % 3 * k + l) * n + j);
    return terms;
  });
}

struct Planes {
  std::int64_t batch, channels, maps, input, kernel, stride, pad, dilation, group;
  std::int64_t output() const { return (input + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1; }
  op::ConvAttributes attributes() const {
    return {.strides = {stride, stride},
            .dilations = {dilation, dilation},
            .pads = {pad, pad, pad, pad},
            .group = group};
  }
};

const Planes planes[] = {{2, 6, 8, 9, 3, 1, 1, 1, 1},
                         {3, 4, 6, 11, 3, 2, 1, 1, 2},
                         {1, 5, 5, 13, 3, 1, 2, 2, 5},
                         {5, 1, 3, 8, 5, 3, 2, 1, 1},
                         {2, 16, 4, 7, 1, 1, 0, 1, 1}};

// Where output o reads the input at a tap; padding where outside.
std::int64_t input_at(const Planes& p, std::int64_t plane, std::int64_t oh, std::int64_t ow,
                      std::int64_t tap) {
  const std::int64_t ih = oh * p.stride - p.pad + tap / p.kernel * p.dilation;
  const std::int64_t iw = ow * p.stride - p.pad + tap % p.kernel * p.dilation;
  if (ih < 0 || ih >= p.input || iw < 0 || iw >= p.input) return padding;
  return (plane * p.input + ih) * p.input + iw;
}

TEST(Numerics, adds_the_products_of_a_convolution_tap_by_tap) {
  for (const Planes& p : planes) {
    const std::int64_t c = p.channels / p.group, taps = p.kernel * p.kernel, o = p.output();
    const auto graph = one_node({p.batch, p.channels, p.input, p.input}, {p.maps, c, p.kernel, p.kernel},
                                [&](op::Var x, op::Var w) { return op::conv(x, w, {}, p.attributes()); });
    expect_defined(graph, [&](std::int64_t result) {
      Terms terms;
      const std::int64_t ow = result % o, oh = result / o % o, m = result / (o * o) % p.maps,
                         n = result / (o * o * p.maps);
      const std::int64_t first = m / (p.maps / p.group) * c;
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t i = 0; i < c; ++i)
          terms.emplace_back(input_at(p, n * p.channels + first + i, oh, ow, tap), (m * c + i) * taps + tap);
      return terms;
    });
  }
}

TEST(Numerics, adds_the_products_of_a_gradient_by_weights_sample_by_sample) {
  for (const Planes& p : planes) {
    const std::int64_t c = p.channels / p.group, taps = p.kernel * p.kernel, o = p.output();
    const graph::Attributes attributes{{"strides", std::vector{p.stride, p.stride}},
                                       {"dilations", std::vector{p.dilation, p.dilation}},
                                       {"pads", std::vector{p.pad, p.pad, p.pad, p.pad}},
                                       {"group", p.group}};
    const auto graph = one_node({p.batch, p.channels, p.input, p.input}, {p.batch, p.maps, o, o},
                                [&](op::Var x, op::Var dy) {
                                  return op::conv_weight_gradient(x, dy, {p.kernel, p.kernel}, attributes);
                                });
    expect_defined(graph, [&](std::int64_t result) {
      Terms terms;
      const std::int64_t tap = result % taps, i = result / taps % c, m = result / (taps * c);
      const std::int64_t channel = m / (p.maps / p.group) * c + i;
      for (std::int64_t n = 0; n < p.batch; ++n)
        for (std::int64_t at = 0; at < o * o; ++at)
          terms.emplace_back(input_at(p, n * p.channels + channel, at / o, at % o, tap),
                             (n * p.maps + m) * o * o + at);
      return terms;
    });
  }
}

TEST(Numerics, adds_the_products_of_a_gradient_by_the_input_tap_by_tap) {
  for (const Planes& p : planes) {
    const std::int64_t c = p.channels / p.group, maps = p.maps / p.group, taps = p.kernel * p.kernel,
                       o = p.output();
    const graph::Attributes attributes{{"strides", std::vector{p.stride, p.stride}},
                                       {"dilations", std::vector{p.dilation, p.dilation}},
                                       {"pads", std::vector{p.pad, p.pad, p.pad, p.pad}},
                                       {"group", p.group}};
    const auto graph =
        one_node({p.batch, p.maps, o, o}, {p.maps, c, p.kernel, p.kernel}, [&](op::Var dy, op::Var w) {
          return op::conv_input_gradient(dy, w, {p.batch, p.channels, p.input, p.input}, attributes);
        });
    expect_defined(graph, [&](std::int64_t result) {
      Terms terms;
      const std::int64_t plane = p.input * p.input, at = result % plane;
      const std::int64_t channel = result / plane % p.channels, n = result / (plane * p.channels),
                         g = channel / c;
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t m = 0; m < maps; ++m) {
          std::int64_t from = padding;
          for (std::int64_t y = 0; y < o * o; ++y)
            if (input_at(p, 0, y / o, y % o, tap) == at) from = (n * p.maps + g * maps + m) * o * o + y;
          terms.emplace_back(from, ((g * maps + m) * c + channel % c) * taps + tap);
        }
      return terms;
    });
  }
}

TEST(Numerics, adds_reductions_one_by_one) {
  graph::Graph graph("sum");
  op::Builder builder(graph);
  const op::Var x = builder.input("x", ElementType::f32, {3, 50, 4});
  builder.output("y", op::reduce_sum(x, {1}));
  const Tensor input = random_tensor(ElementType::f32, {3, 50, 4}, 3);
  const Tensor ones = Tensor::full(ElementType::f32, {1}, 1);
  for (const char* const name : {"16.16", "a100-tf32", "16.16:chunk=1"}) {
    const Arithmetic arithmetic = target::numerics::parse_spec(name).base.arithmetic;
    const Tensor found = only_output(*emulated(graph, name), {input});
    for (std::int64_t i = 0; i < found.element_count(); ++i) {
      Terms terms;
      for (std::int64_t k = 0; k < 50; ++k) terms.emplace_back((i / 4 * 50 + k) * 4 + i % 4, 0);
      EXPECT_EQ(defined(input, ones, terms, arithmetic), static_cast<float>(found.at(i))) << name;
    }
  }
}

TEST(Numerics, repeats_on_any_number_of_threads) {
  const graph::Graph graph = pooled_network(5);
  const Tensor x = random_tensor(ElementType::f32, {5, 3, 12, 12}, 4);
  const Tensor one = only_output(*emulated(graph, "gc200-sr", 1), {x});
  for (const int threads : {2, 3})
    EXPECT_EQ(0, largest_difference(one, only_output(*emulated(graph, "gc200-sr", threads), {x})));
  EXPECT_NE(0, largest_difference(one, only_output(*emulated(graph, "gc200-sr:seed=2"), {x})));
  const auto executable = emulated(graph, "gc200-sr");
  only_output(*executable, {x});
  EXPECT_NE(0, largest_difference(one, only_output(*executable, {x})));  // the next run draws other words
}

TEST(Numerics, keeps_every_result_in_its_type) {
  const graph::Graph graph = attention_network(2);
  const auto executable = emulated(graph, "gc200-16.16");
  int results = 0, wrong = 0;
  executable->watch([&](graph::NodeId, std::size_t, const Tensor& value) {
    ++results;
    for (const float element : value.as<float>()) wrong += static_cast<float>(f16(element)) != element;
  });
  only_output(*executable, {random_tensor(ElementType::f32, graph.type(graph.inputs()[0]).shape, 4)});
  EXPECT_GT(results, 20);
  EXPECT_EQ(0, wrong);
}

TEST(Numerics, computes_named_nodes_in_another_arithmetic) {
  const graph::Graph graph = pooled_network(2);
  const auto executable = emulated(graph, "f32;conv2=f16;conv*3=bf16");
  for (std::size_t i = 0; i < executable->graph().node_count(); ++i) {
    const graph::NodeId id(static_cast<std::uint32_t>(i));
    const std::string& name = executable->graph().node(id).name;
    const auto expected = name == "conv2"   ? numerics::Format::f16
                          : name == "conv3" ? numerics::Format::bf16
                                            : numerics::Format::f32;
    EXPECT_EQ(expected, executable->arithmetic_of(id).operands.format) << name;
  }
}

// Three steps from the same parameters: losses, and every state after them.
void expect_trained_alike(const std::string& name, const target::GraphAtBatch& model,
                          transform::OptimizerKind kind) {
  const auto step = [&](std::int64_t batch) {
    return transform::make_training_step(model(batch), {}, {.kind = kind, .momentum = 0.5}, {});
  };
  target::CompileOptions options = options_at(6);
  options.micro_batch = 6;
  Runner expected("cpu", step, options), found("numerics:f32", step, options);
  for (int i = 0; i < 3; ++i) {
    expected.run(), found.run();
    EXPECT_NEAR(expected.outputs[0].at(0), found.outputs[0].at(0), 1e-5 * expected.outputs[0].at(0))
        << name << i;
  }
  for (const std::string& state : expected.executable->state_names())
    expect_close(found.executable->state(state), expected.executable->state(state), 2e-4, name + " " + state);
}

// Adam makes whole steps of gradients that are nothing but rounding, as those of biases in front of a
// softmax.
TEST(Numerics, trains_in_f32_as_the_cpu_does) {
  for (const Case& each : models()) {
    expect_trained_alike(each.name, each.model, transform::OptimizerKind::sgd);
    if (std::string_view(each.name) != "attention")
      expect_trained_alike(each.name, each.model, transform::OptimizerKind::adam);
  }
}

TEST(Numerics, keeps_parameters_in_the_type_of_updates) {
  const auto step = [](std::int64_t batch) {
    return transform::make_training_step(perceptron(batch), {}, {}, {});
  };
  target::CompileOptions options = options_at(4);
  for (const auto& [name, rounded] :
       {std::pair("numerics:gc200", false), std::pair("numerics:gc200:update=f16", true)}) {
    Runner runner(name, step, options);
    runner.run();
    int others = 0;
    const Tensor weights = runner.executable->state("dense1.weight");
    for (const float value : weights.as<float>()) others += static_cast<float>(f16(value)) != value;
    EXPECT_EQ(rounded, others == 0) << name;
  }
}

// Second moments of Adam are below what f16 holds: they stay in f32, as do counters.
TEST(Numerics, keeps_moments_of_the_optimizer_in_f32) {
  const auto step = [](std::int64_t batch) {
    return transform::make_training_step(perceptron(batch), {}, {.kind = transform::OptimizerKind::adam}, {});
  };
  Runner runner("numerics:gc200:update=f16", step, options_at(4));
  for (int i = 0; i < 4; ++i) runner.run();
  int moments = 0;
  for (const std::string& name : runner.executable->state_names()) {
    if (!name.starts_with("adam.v")) continue;
    const Tensor state = runner.executable->state(name);
    ++moments;
    int others = 0;
    for (const float value : state.as<float>()) {
      EXPECT_TRUE(std::isfinite(value)) << name;
      others += static_cast<float>(f16(value)) != value;
    }
    EXPECT_GT(others, 0) << name;
  }
  EXPECT_GT(moments, 0);
}

TEST(Numerics, refuses_what_it_does_not_know_by_name) {
  const auto find = [](const char* name) { return [name] { target::find_target(name); }; };
  EXPECT_NE(nullptr, &target::find_target("numerics:gc200"));
  expect_error(ErrorCode::invalid_argument, {"gc201"}, find("numerics:gc201"));
  expect_error(ErrorCode::invalid_argument, {"mode 'f64'"}, find("numerics:gc200-f64"));
  expect_error(ErrorCode::invalid_argument, {"h100"}, find("numerics:h100"));
  expect_error(ErrorCode::invalid_argument, {"gc200:chunks=4", "chunks"}, find("numerics:gc200:chunks=4"));
  expect_error(ErrorCode::invalid_argument, {"gc200:chunk=x", "no whole number"},
               find("numerics:gc200:chunk=x"));
  expect_error(ErrorCode::invalid_argument, {"'chunk' is given twice"},
               find("numerics:gc200:chunk=4,chunk=8"));
  expect_error(ErrorCode::invalid_argument, {"'f12'"}, find("numerics:f32;conv1=f16:results=f12"));
  expect_error(ErrorCode::invalid_argument, {"conv9"}, [] { emulated(pooled_network(1), "f32;conv9=f16"); });
}

}  // namespace
}  // namespace superstep::test
