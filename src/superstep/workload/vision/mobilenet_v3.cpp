// MobileNetV3: depthwise convolutions, squeeze and excitation, hard swish (A. Howard et al., Searching for
// MobileNetV3, ICCV 2019).
//
// image f32 [N, 3, 224, 224] -> logits f32 [N, 1000].
#include <fmt/format.h>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/workload/vision/classifier.h"

namespace superstep::workload {
namespace {

constexpr double mobile_epsilon = 1e-3, mobile_momentum = 0.99;

struct MobileRow {
  std::int64_t kernel, expanded, channels;
  bool excites, swishes;
  std::int64_t stride;
};

// Tables 1 and 2 of the paper.
constexpr MobileRow small_rows[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
};
constexpr MobileRow large_rows[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

Var hard_gate(Var x) { return op::hard_sigmoid(x, 1.0 / 6, 0.5); }

Var mobile_conv(Layers& layers, Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                const op::ConvAttributes& attributes = {}) {
  return layers.batch_norm(layers.plain_conv(x, name, channels, kernel, attributes), name + ".norm",
                           mobile_epsilon, mobile_momentum);
}

Var mobile_block(Layers& layers, Var x, const std::string& name, const MobileRow& row) {
  const auto activated = [&](Var y) { return row.swishes ? layers.hard_swish(y) : layers.relu(y); };
  const std::int64_t pad = row.kernel / 2;
  Var y = x;
  if (row.expanded != x.shape()[1]) y = activated(mobile_conv(layers, y, name + ".expand", row.expanded, 1));
  y = activated(mobile_conv(
      layers, y, name + ".depthwise", row.expanded, row.kernel,
      {.strides = {row.stride, row.stride}, .pads = {pad, pad, pad, pad}, .group = row.expanded}));
  if (row.excites)
    y = squeeze_excite(layers, y, name + ".excite", rounded_width(static_cast<double>(row.expanded / 4)),
                       &Layers::relu, hard_gate);
  y = mobile_conv(layers, y, name + ".project", row.channels, 1);
  if (row.stride != 1 || x.shape()[1] != row.channels) return y;
  const op::NameScope scope(layers.builder(), name + ".sum");
  return y + x;
}

graph::Graph build_mobilenet(const char* name, std::span<const MobileRow> rows, std::int64_t head,
                             std::int64_t batch, const Options& options, std::uint64_t seed) {
  const ClassifierSizes sizes = classifier_sizes(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  Var x = image_input(b, batch, sizes.size);
  x = layers.hard_swish(mobile_conv(layers, x, "stem", 16, 3, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
  int number = 1;
  for (const MobileRow& row : rows) x = mobile_block(layers, x, fmt::format("block{}", number++), row);
  x = layers.hard_swish(mobile_conv(layers, x, "last", 6 * x.shape()[1], 1));
  x = layers.hard_swish(layers.dense(pooled(b, x), "fc1", head));
  b.output("logits", layers.dense(layers.dropout(x, "dropout", 0.2), "fc2", sizes.classes));
  return graph;
}

graph::Graph build_mobilenet_small(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_mobilenet("mobilenet-v3-small", small_rows, 1024, batch, options, seed);
}
graph::Graph build_mobilenet_large(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_mobilenet("mobilenet-v3-large", large_rows, 1280, batch, options, seed);
}

Workload mobilenet(std::int64_t size) {
  Workload workload = classifier(size);
  workload.published = by_rmsprop(0.1);
  workload.published->source =
      "A. Howard et al., ICCV 2019; decay, warm-up and epochs are EfficientNet's, the batch is chosen here";
  workload.by_default = RecipeName::quick;
  return workload;
}

}  // namespace

Workload mobilenet_v3_small() {
  Workload workload = mobilenet(224);
  workload.name = "mobilenet-v3-small";
  workload.summary = "classes of pictures, by depthwise convolutions for small devices";
  workload.build = build_mobilenet_small;
  workload.parameters = 2542856;
  workload.flops = 119207920;
  return workload;
}

Workload mobilenet_v3_large() {
  Workload workload = mobilenet(224);
  workload.name = "mobilenet-v3-large";
  workload.summary = "the same with more blocks and channels";
  workload.build = build_mobilenet_large;
  workload.parameters = 5483032;
  workload.flops = 451920112;
  return workload;
}

}  // namespace superstep::workload
