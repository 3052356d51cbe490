// EfficientNet: inverted bottlenecks with squeeze and excitation, scaled in width, depth and resolution
// together (M. Tan, Q. Le, ICML 2019).
//
// image f32 [N, 3, 224, 224] (b4: 380) -> logits f32 [N, 1000].
#include <fmt/format.h>

#include <cmath>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/workload/vision/classifier.h"

namespace superstep::workload {
namespace {

struct EfficientStage {
  std::int64_t expansion, channels, repeats, kernel, stride;
};

// Table 1 of the paper.
constexpr EfficientStage efficient_stages[] = {{1, 16, 1, 3, 1}, {6, 24, 2, 3, 2},  {6, 40, 2, 5, 2},
                                               {6, 80, 3, 3, 2}, {6, 112, 3, 5, 1}, {6, 192, 4, 5, 2},
                                               {6, 320, 1, 3, 1}};

struct EfficientScale {
  const char* name;
  double width, depth, dropout;
};

Var sigmoid_gate(Var x) { return op::sigmoid(x); }

Var efficient_conv(Layers& layers, Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                   const op::ConvAttributes& attributes = {}) {
  return layers.batch_norm(layers.plain_conv(x, name, channels, kernel, attributes), name + ".norm");
}

Var efficient_block(Layers& layers, Var x, const std::string& name, const EfficientStage& stage,
                    std::int64_t channels, std::int64_t stride, double dropped) {
  const std::int64_t in = x.shape()[1], expanded = in * stage.expansion, pad = stage.kernel / 2;
  Var y = x;
  if (stage.expansion != 1) y = layers.silu(efficient_conv(layers, y, name + ".expand", expanded, 1));
  y = layers.silu(
      efficient_conv(layers, y, name + ".depthwise", expanded, stage.kernel,
                     {.strides = {stride, stride}, .pads = {pad, pad, pad, pad}, .group = expanded}));
  y = squeeze_excite(layers, y, name + ".excite", std::max<std::int64_t>(1, in / 4), &Layers::silu,
                     sigmoid_gate);
  y = efficient_conv(layers, y, name + ".project", channels, 1);
  if (stride != 1 || in != channels) return y;
  if (dropped > 0) y = layers.stochastic_depth(y, name + ".depth", dropped);
  const op::NameScope scope(layers.builder(), name + ".sum");
  return y + x;
}

graph::Graph build_efficientnet(const EfficientScale& scale, std::int64_t batch, const Options& options,
                                std::uint64_t seed) {
  const ClassifierSizes sizes = classifier_sizes(options);
  const double factor = scale.width * options.number("width", 0.1, 10);
  const auto width = [&](std::int64_t channels) {
    return rounded_width(factor * static_cast<double>(channels));
  };
  graph::Graph graph(scale.name);
  Builder b(graph);
  Layers layers(b, seed);
  Var x = image_input(b, batch, sizes.size);
  x = layers.silu(efficient_conv(layers, x, "stem", width(32), 3, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
  const auto repeats_of = [&](const EfficientStage& stage) {
    return static_cast<std::int64_t>(std::ceil(scale.depth * static_cast<double>(stage.repeats)));
  };
  std::int64_t blocks = 0, block = 0;
  for (const EfficientStage& stage : efficient_stages) blocks += repeats_of(stage);
  // The deeper a block, the oftener samples leave it out (G. Huang et al., ECCV 2016).
  const double dropped = options.number("stochastic-depth", 0, 0.9) / static_cast<double>(blocks);
  int number = 1;
  for (const EfficientStage& stage : efficient_stages) {
    const std::int64_t repeats = repeats_of(stage);
    for (std::int64_t i = 0; i < repeats; ++i)
      x = efficient_block(layers, x, fmt::format("stage{}.{}", number, i), stage, width(stage.channels),
                          i == 0 ? stage.stride : 1, dropped * static_cast<double>(block++));
    ++number;
  }
  x = layers.silu(efficient_conv(layers, x, "last", 4 * x.shape()[1], 1));
  x = layers.dropout(pooled(b, x), "dropout", scale.dropout);
  b.output("logits", layers.dense(x, "fc", sizes.classes));
  return graph;
}

constexpr EfficientScale b0{"efficientnet-b0", 1.0, 1.0, 0.2}, b4{"efficientnet-b4", 1.4, 1.8, 0.4};

graph::Graph build_b0(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_efficientnet(b0, batch, options, seed);
}
graph::Graph build_b4(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_efficientnet(b4, batch, options, seed);
}

Workload efficientnet(std::int64_t size) {
  Workload workload = classifier(size);
  workload.options.push_back(
      {"width", "1", "times the channels as published: 0.5 has about a quarter of the work"});
  workload.options.push_back(
      {"stochastic-depth", "0",
       "share of the samples that leave out the last block in training; earlier blocks less"});
  workload.published = by_rmsprop(0.256);
  workload.published->model_options = {"stochastic-depth=0.2"};
  workload.by_default = RecipeName::quick;
  return workload;
}

}  // namespace

Workload efficientnet_b0() {
  Workload workload = efficientnet(224);
  workload.name = b0.name;
  workload.summary = "classes of pictures, by inverted bottlenecks with squeeze and excitation";
  workload.build = build_b0;
  workload.parameters = 5288548;
  return workload;
}

Workload efficientnet_b4() {
  Workload workload = efficientnet(380);
  workload.name = b4.name;
  workload.summary = "the same, wider, deeper and on larger pictures";
  workload.build = build_b4;
  workload.parameters = 19341616;
  return workload;
}

}  // namespace superstep::workload
