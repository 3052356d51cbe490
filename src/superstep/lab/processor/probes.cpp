#include "superstep/lab/processor/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/window/pooling.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/attention.h"
#include "superstep/workload/layers.h"

namespace superstep::lab {
namespace {

using op::Builder;
using op::Var;
using workload::Layers;

// Draws from lists; the same calls give the same numbers at every batch.
class Draw {
 public:
  explicit Draw(std::uint64_t number) : random_(number, 0, 0x70726f62) {}
  std::int64_t of(std::initializer_list<std::int64_t> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random_.below(list.size())));
  }
  bool chance(double share) { return random_.uniform() < share; }

 private:
  RandomStream random_;
};

Var activated(Layers& layers, Var x, std::int64_t which) {
  switch (which) {
    case 0: return layers.relu(x);
    case 1: return layers.leaky_relu(x);
    case 2: return layers.silu(x);
    default: return layers.gelu(x);
  }
}

Var averaged(Builder& b, Var x) {
  const op::NameScope scope(b, "pool");
  return op::flatten(op::global_average_pool(x));
}

// Extents of images shrink as channels grow, so that no layer takes longer than some milliseconds.
Var convolutions(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t size = draw.of({11, 16, 28, 32, 56, 64, 96, 128}), act = draw.of({0, 0, 1, 2});
  Var x = b.input("x", ElementType::f32, {batch, draw.of({1, 1, 3, 4, 16}), size, size});
  const bool normed = draw.chance(0.4), padded = draw.chance(0.7);
  std::int64_t channels = draw.of({4, 8, 16, 24, 32, 64});
  for (std::int64_t i = 0, layers_count = draw.of({3, 4, 5}); i < layers_count; ++i) {
    const std::int64_t kernel = draw.of({1, 3, 3, 3, 5, 7}), pad = padded ? kernel / 2 : 0,
                       stride = draw.of({1, 1, 1, 2});
    if (x.shape()[2] < kernel + 2) break;
    const op::ConvAttributes attributes{.strides = {stride, stride}, .pads = {pad, pad, pad, pad}};
    const std::string name = fmt::format("conv{}", i);
    x = normed ? layers.batch_norm(layers.plain_conv(x, name, channels, kernel, attributes), name + ".norm")
               : layers.conv(x, name, channels, kernel, attributes);
    x = activated(layers, x, act);
    if (x.shape()[2] >= 8 && draw.chance(0.4))
      x = op::max_pool(x, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
    channels = std::min<std::int64_t>(x.shape()[2] > 40 ? 64 : 256,
                                      draw.of({channels, 2 * channels, 3 * channels / 2}));
  }
  if (draw.chance(0.5)) return layers.dense(averaged(b, x), "head", draw.of({2, 10, 100, 1000}));
  return layers.dense(layers.relu(layers.dense(op::flatten(x), "inner", draw.of({16, 64, 128}))), "head", 10);
}

// Down and up again, as models that give images do.
Var there_and_back(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t size = draw.of({16, 32, 64, 96}), width = draw.of({8, 16, 24, 32});
  Var x = b.input("x", ElementType::f32, {batch, draw.of({1, 3}), size, size});
  const bool normed = draw.chance(0.5);
  const auto conv = [&](Var y, const std::string& name, std::int64_t channels) {
    const op::ConvAttributes attributes{.pads = {1, 1, 1, 1}};
    return layers.relu(
        normed ? layers.batch_norm(layers.plain_conv(y, name, channels, 3, attributes), name + ".norm")
               : layers.conv(y, name, channels, 3, attributes));
  };
  const Var skip = conv(conv(x, "a", width), "b", width);
  x = op::max_pool(skip, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  x = conv(conv(x, "c", 2 * width), "d", 2 * width);
  const Var both[] = {layers.conv_transpose(x, "up", width, 2, {{.strides = {2, 2}}}), skip};
  x = conv(draw.chance(0.7) ? op::concat(both, 1) : both[0], "e", width);
  x = layers.conv(x, "head", 1, draw.of({1, 3}), {.pads = {}});
  return draw.chance(0.5) ? op::sigmoid(x) : x;
}

// Inverted bottlenecks; like all shapes here they are chosen, to lie around what networks have.
Var depthwise(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t size = draw.of({14, 28, 56, 112}), kernel = draw.of({3, 5}), pad = kernel / 2;
  std::int64_t channels = draw.of({16, 24, 40, 80});
  Var x = b.input("x", ElementType::f32, {batch, channels, size, size});
  const auto normed = [&](Var y, const std::string& name) { return layers.batch_norm(y, name + ".norm"); };
  const auto act = [&, which = draw.of({0, 1, 2})](Var y) {
    return which == 0 ? layers.relu(y) : which == 1 ? layers.hard_swish(y) : layers.silu(y);
  };
  for (std::int64_t i = 0; i < 2; ++i) {
    const std::string name = fmt::format("block{}", i);
    const std::int64_t expanded = channels * draw.of({3, 4, 6}), stride = draw.of({1, 2});
    Var y = act(normed(layers.plain_conv(x, name + ".expand", expanded, 1), name + ".expand"));
    y = act(normed(
        layers.plain_conv(y, name + ".depthwise", expanded, kernel,
                          {.strides = {stride, stride}, .pads = {pad, pad, pad, pad}, .group = expanded}),
        name + ".depthwise"));
    if (draw.chance(0.5)) {
      const Var code =
          layers.relu(layers.conv(op::global_average_pool(y), name + ".reduce", expanded / 4, 1));
      y = y * op::hard_sigmoid(layers.conv(code, name + ".excite", expanded, 1), 1.0 / 6, 0.5);
    }
    y = normed(layers.plain_conv(y, name + ".project", channels, 1), name + ".project");
    x = stride == 1 ? y + x : y;
  }
  return layers.dense(averaged(b, x), "head", draw.of({10, 1000}));
}

// Chosen, from those that fit a cache to those that do not.
Var perceptron(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  Var x = b.input("x", ElementType::f32, {batch, draw.of({7, 16, 60, 200, 800, 3000, 6000})});
  const std::int64_t act = draw.of({0, 0, 1, 3});
  for (std::int64_t i = 0, count = draw.of({2, 3, 4}); i < count; ++i) {
    const std::string name = fmt::format("fc{}", i);
    x = activated(layers, layers.dense(x, name, draw.of({10, 40, 64, 256, 500, 1000, 2500})), act);
    if (draw.chance(0.3)) x = layers.dropout(x, name + ".dropout", 0.1);
  }
  return layers.dense(x, "head", draw.of({1, 10, 300}));
}

// Chosen, from attention over pixels to that over words.
Var transformer(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t heads = draw.of({1, 2, 4, 8}), width = heads * draw.of({8, 16, 32, 64}),
                     length = draw.of({16, 50, 81, 128});
  Var x = layers.linear(b.input("x", ElementType::f32, {batch, length, draw.of({12, 64})}), "in", width);
  const double dropped = draw.chance(0.5) ? 0.1 : 0;
  std::optional<Var> hidden;  // what may not be seen, in the second layer: both kinds are measured
  if (draw.chance(0.5)) hidden = b.input("hidden", ElementType::f32, {batch, 1, 1, length});
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("layer{}", i);
    const Var q = layers.linear(x, name + ".q", width), k = layers.linear(x, name + ".k", width),
              v = layers.linear(x, name + ".v", width);
    const Var mixed =
        workload::attention(layers, workload::split_heads(q, heads), workload::split_heads(k, heads),
                            workload::split_heads(v, heads), i > 0 ? hidden : std::nullopt, dropped);
    Var y = layers.linear(mixed, name + ".out", width);
    if (dropped > 0) y = layers.dropout(y, name + ".dropout", dropped);
    x = layers.layer_norm(y + x, name + ".norm1");
    const Var inner = layers.gelu(layers.linear(x, name + ".inner", draw.of({2, 4}) * width));
    x = layers.layer_norm(layers.linear(inner, name + ".outer", width) + x, name + ".norm2");
  }
  return layers.linear(x, "head", draw.of({1, 30, 500}));
}

// Chosen.
Var recurrent(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  Var x = op::transpose(
      b.input("x", ElementType::f32, {batch, draw.of({10, 25, 40, 60}), draw.of({1, 8, 60, 256})}),
      {1, 0, 2});
  Layers::Sequence sequence = layers.lstm(x, "lstm0", draw.of({32, 96, 160, 256, 400}));
  if (draw.chance(0.5)) sequence = layers.lstm(sequence.states, "lstm1", draw.of({64, 128, 320}));
  return layers.dense(sequence.last, "head", draw.of({1, 7}));
}

// Rows sent along the edges of graphs, joined with features of the edges, and added up again.
Var messages(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t rows = draw.of({24, 64, 128}), edges = rows * draw.of({2, 4, 16}),
                     width = draw.of({16, 32, 64, 128});
  Var x = layers.linear(b.input("x", ElementType::f32, {batch, rows, draw.of({8, 40})}), "in", width);
  const Var source = b.input("source", ElementType::i64, {batch, edges}),
            sink = b.input("sink", ElementType::i64, {batch, edges});
  const Var features = b.input("features", ElementType::f32, {batch, edges, draw.of({4, 16})});
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("layer{}", i);
    const Var sent = op::gather_rows(x, source);
    const Var message =
        draw.chance(0.5) ? sent * layers.linear(layers.silu(layers.linear(features, name + ".filter", width)),
                                                name + ".filter2", width)
                         : layers.relu(layers.linear(sent, name + ".message", width));
    x = layers.silu(layers.linear(op::segment_sum(message, sink, rows), name + ".update", width)) + x;
  }
  return layers.linear(x, "head", 1);
}

// Few channels of large pictures, and arithmetic of them: filters, as detectors and simulations have them.
Var filters(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t size = draw.of({96, 200, 320, 640}), kernel = draw.of({3, 3, 5}), pad = kernel / 2;
  const op::ConvAttributes attributes{.pads = {pad, pad, pad, pad}};
  const Var x = b.input("x", ElementType::f32, {batch, draw.of({1, 1, 2, 3}), size, size});
  const Var one = layers.plain_conv(x, "one", 1, kernel, attributes),
            two = layers.plain_conv(x, "two", 1, kernel, attributes);
  Var y = op::sqrt(one * one + two * two + 1e-6);
  if (draw.chance(0.5)) y = op::tanh(y);
  return draw.chance(0.5) ? layers.plain_conv(y, "three", draw.of({1, 4, 8}), kernel, attributes) : y;
}

// Rows of features, small products of each and functions that take long: what particles and grids have.
Var descriptors(Builder& b, Layers& layers, std::int64_t batch, Draw draw) {
  const std::int64_t rows = draw.of({32, 96, 192}), neighbours = draw.of({16, 46, 90}),
                     width = draw.of({8, 25, 50});
  const Var r = b.input("r", ElementType::f32, {batch, rows, neighbours, 4});
  Var g = op::tanh(layers.linear(r, "embed", width));
  g = op::tanh(layers.linear(g, "widen", 2 * width));
  const Var moments = op::matmul(op::swap_axes(g, 2, 3), r) * (1.0 / static_cast<double>(neighbours));
  const std::int64_t kept = draw.of({4, 8});
  const Var part = op::slice(moments, {0}, {kept}, {2});
  const Var d = op::reshape(op::matmul(moments, op::swap_axes(part, 2, 3)), {batch, rows, 2 * width * kept});
  return layers.linear(op::tanh(layers.linear(d, "inner", draw.of({60, 120, 240}))), "head", 1);
}

using Network = Var (*)(Builder&, Layers&, std::int64_t batch, Draw);
struct Kind {
  const char* name;
  Network build;
  std::array<std::int64_t, 4> batches;
};
// Batches are chosen, from one sample to what fills the caches.
constexpr Kind kinds[] = {
    {"convolutions", convolutions, {1, 4, 16, 64}},
    {"there and back", there_and_back, {1, 2, 4, 16}},
    {"depthwise", depthwise, {1, 1, 2, 8}},
    {"perceptron", perceptron, {1, 16, 64, 256}},
    {"transformer", transformer, {1, 2, 8, 16}},
    {"recurrent", recurrent, {1, 8, 16, 64}},
    {"messages", messages, {1, 2, 8, 16}},
    {"convolutions", convolutions, {1, 8, 32, 128}},
    {"filters", filters, {1, 1, 4, 8}},
    {"descriptors", descriptors, {1, 2, 4, 8}},
};

// Half of them by Adam, as most models are trained; the draw has a stream of its own.
transform::OptimizerSpec optimizer_of(std::uint64_t number) {
  using transform::OptimizerKind;
  static constexpr OptimizerKind others[] = {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::rmsprop,
                                             OptimizerKind::adamax};
  RandomStream random(number, 1, 0x70726f62);
  if (random.uniform() < 0.5) return {};
  transform::OptimizerSpec spec = transform::usual_optimizer(others[random.below(std::size(others))]);
  if (spec.kind == OptimizerKind::sgd) spec.momentum = random.uniform() < 0.5 ? 0.9 : 0;
  return spec;
}

// Of six rounds two times served and trained in f32, then once each in bf16; the last rounds are served on
// bytes.
constexpr std::uint64_t rounds_of_floats = 12;

const char* precision_of(std::uint64_t round) {
  if (round >= rounds_of_floats) return "int8";
  return round % 6 >= 4 ? "bf16" : "f32";
}

// What a product on bytes takes does not depend on ranges: those of random numbers do. Where nothing gains
// from bytes the probe stays as it was.
void put_on_bytes(Probe& probe, std::uint64_t seed) {
  const auto fill = [seed](std::int64_t, std::span<Tensor> inputs) {
    for (Tensor& input : inputs)
      if (is_floating(input.type())) fill_random(input, seed, 1);
  };
  try {
    probe.graph = run::quantize_model(
                      target::find_target("cpu"), probe.graph, {},
                      {.samples = probe.batch, .batch = probe.batch, .products = {.beside_bf16 = true}}, fill)
                      .graph;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    probe.precision = "f32";
  }
}

}  // namespace

Probe probe(std::uint64_t number) {
  const Kind& kind = kinds[number % std::size(kinds)];
  const std::uint64_t round = number / std::size(kinds);
  Probe probe{.name = fmt::format("{} {}", kind.name, number),
              .trains = round < rounds_of_floats && round % 2 == 1,
              .precision = precision_of(round),
              .batch = kind.batches[(round / 2 + round) % 4],
              .graph = {}};
  std::vector<transform::Pass> passes;
  if (probe.precision == "bf16") passes.push_back(transform::autocast_pass(ElementType::bf16, probe.trains));
  probe.graph = [&kind, number, passes, trains = probe.trains](std::int64_t batch) {
    graph::Graph graph("probe");
    Builder b(graph);
    Layers layers(b, number);
    b.output("y", kind.build(b, layers, batch, Draw(number)));
    graph = transform::run_passes(std::move(graph), passes);
    return trains ? transform::make_training_step(graph, {}, optimizer_of(number)) : graph;
  };
  if (probe.precision == "int8") put_on_bytes(probe, number);
  return probe;
}

}  // namespace superstep::lab
