// EfficientNet: inverted bottlenecks with squeeze and excitation, scaled in width, depth and resolution
// together (M. Tan, Q. Le, ICML 2019). With group-width=16 expansion=4 norm=group it is the G16 form (D.
// Masters et al., arXiv 2106.03640): products of 16 by 16 channels where there was one channel each, fewer
// channels for it, and no statistics of a batch.
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
  std::int64_t channels, repeats, kernel, stride;
};

// Table 1 of the paper. The first stage does not expand.
constexpr EfficientStage efficient_stages[] = {{16, 1, 3, 1},  {24, 2, 3, 2},  {40, 2, 5, 2}, {80, 3, 3, 2},
                                               {112, 3, 5, 1}, {192, 4, 5, 2}, {320, 1, 3, 1}};

struct EfficientScale {
  const char* name;
  double width, depth, dropout;
};

// What may differ between the blocks of two networks.
struct EfficientForm {
  std::int64_t group_width = 1, expansion = 6;
  bool norm_by_group = false;
};

EfficientForm efficient_form(const Options& options) {
  static const std::string norms[] = {"batch", "group"};
  return {options.integer("group-width", 1, 1024), options.integer("expansion", 1, 16),
          options.choice("norm", norms) == 1};
}

// As many groups of at least so many channels as divide them all.
std::int64_t groups_of(std::int64_t channels, std::int64_t group_width) {
  std::int64_t groups = std::max<std::int64_t>(1, channels / group_width);
  while (channels % groups != 0) --groups;
  return groups;
}

Var sigmoid_gate(Var x) { return op::sigmoid(x); }

Var efficient_conv(Layers& layers, const EfficientForm& form, Var x, const std::string& name,
                   std::int64_t channels, std::int64_t kernel, const op::ConvAttributes& attributes = {}) {
  // Groups and epsilon as the authors' program has them (graphcore/examples, EfficientNet).
  constexpr std::int64_t norm_groups = 4;
  constexpr double epsilon = 1e-3;
  const Var y = layers.plain_conv(x, name, channels, kernel, attributes);
  return form.norm_by_group ? layers.group_norm(y, name + ".norm", norm_groups, epsilon)
                            : layers.batch_norm(y, name + ".norm");
}

struct EfficientBlock {
  std::int64_t kernel, channels, stride, expansion;
  double dropped;
};

Var efficient_block(Layers& layers, const EfficientForm& form, Var x, const std::string& name,
                    const EfficientBlock& block) {
  const std::int64_t in = x.shape()[1], expanded = in * block.expansion, pad = block.kernel / 2,
                     stride = block.stride;
  Var y = x;
  if (block.expansion != 1) y = layers.silu(efficient_conv(layers, form, y, name + ".expand", expanded, 1));
  y = layers.silu(efficient_conv(layers, form, y, name + ".depthwise", expanded, block.kernel,
                                 {.strides = {stride, stride},
                                  .pads = {pad, pad, pad, pad},
                                  .group = groups_of(expanded, form.group_width)}));
  y = squeeze_excite(layers, y, name + ".excite", std::max<std::int64_t>(1, in / 4), &Layers::silu,
                     sigmoid_gate);
  y = efficient_conv(layers, form, y, name + ".project", block.channels, 1);
  if (stride != 1 || in != block.channels) return y;
  const double dropped = block.dropped;
  if (dropped > 0) y = layers.stochastic_depth(y, name + ".depth", dropped);
  const op::NameScope scope(layers.builder(), name + ".sum");
  return y + x;
}

graph::Graph build_efficientnet(const EfficientScale& scale, std::int64_t batch, const Options& options,
                                std::uint64_t seed) {
  const ClassifierSizes sizes = classifier_sizes(options);
  const EfficientForm form = efficient_form(options);
  const double factor = scale.width * options.number("width", 0.1, 10);
  const auto width = [&](std::int64_t channels) {
    return rounded_width(factor * static_cast<double>(channels));
  };
  graph::Graph graph(scale.name);
  Builder b(graph);
  Layers layers(b, seed);
  Var x = image_input(b, batch, sizes.size);
  x = layers.silu(
      efficient_conv(layers, form, x, "stem", width(32), 3, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
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
      x = efficient_block(layers, form, x, fmt::format("stage{}.{}", number, i),
                          {.kernel = stage.kernel,
                           .channels = width(stage.channels),
                           .stride = i == 0 ? stage.stride : 1,
                           .expansion = number == 1 ? 1 : form.expansion,
                           .dropped = dropped * static_cast<double>(block++)});
    ++number;
  }
  x = layers.silu(efficient_conv(layers, form, x, "last", 4 * x.shape()[1], 1));
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
  workload.options.push_back({"group-width", "1", "channels of a group in the blocks' windows: 16 of G16"});
  workload.options.push_back({"expansion", "6", "times the channels within a block: 4 of G16"});
  workload.options.push_back(
      {"norm", "batch", "what normalizes: batch, or group, four groups of channels of every sample (G16)"});
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
  workload.flops = 809127916;
  return workload;
}

Workload efficientnet_b4() {
  Workload workload = efficientnet(380);
  workload.name = b4.name;
  workload.summary = "the same, wider, deeper and on larger pictures";
  workload.build = build_b4;
  workload.parameters = 19341616;
  workload.flops = 9068110120;
  return workload;
}

}  // namespace superstep::workload
