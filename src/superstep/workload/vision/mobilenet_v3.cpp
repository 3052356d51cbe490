#include "superstep/workload/vision/mobilenet_v3.h"

#include <fmt/format.h>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/workload/vision/classifier.h"

namespace superstep::workload {
namespace {

constexpr double epsilon = 1e-3, momentum = 0.99;

struct Row {
  std::int64_t kernel, expanded, channels;
  bool excites, swishes;
  std::int64_t stride;
};

// Tables 1 and 2 of the paper.
constexpr Row small_rows[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
};
constexpr Row large_rows[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

Var hard_gate(Var x) { return op::hard_sigmoid(x, 1.0 / 6, 0.5); }

Var normalised(Layers& layers, Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
               const op::ConvAttributes& attributes = {}) {
  return layers.batch_norm(layers.plain_conv(x, name, channels, kernel, attributes), name + ".norm", epsilon,
                           momentum);
}

Var block(Layers& layers, Var x, const std::string& name, const Row& row) {
  const auto activated = [&](Var y) { return row.swishes ? layers.hard_swish(y) : layers.relu(y); };
  const std::int64_t pad = row.kernel / 2;
  Var y = x;
  if (row.expanded != x.shape()[1]) y = activated(normalised(layers, y, name + ".expand", row.expanded, 1));
  y = activated(
      normalised(layers, y, name + ".depthwise", row.expanded, row.kernel,
                 {.strides = {row.stride, row.stride}, .pads = {pad, pad, pad, pad}, .group = row.expanded}));
  if (row.excites)
    y = squeeze_excite(layers, y, name + ".excite", rounded_width(static_cast<double>(row.expanded / 4)),
                       &Layers::relu, hard_gate);
  y = normalised(layers, y, name + ".project", row.channels, 1);
  if (row.stride != 1 || x.shape()[1] != row.channels) return y;
  const op::NameScope scope(layers.builder(), name + ".sum");
  return y + x;
}

graph::Graph build(const char* name, std::span<const Row> rows, std::int64_t head, std::int64_t batch,
                   const Options& options, std::uint64_t seed) {
  const ClassifierSizes sizes = classifier_sizes(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  Var x = image_input(b, batch, sizes.size);
  x = layers.hard_swish(normalised(layers, x, "stem", 16, 3, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
  int number = 1;
  for (const Row& row : rows) x = block(layers, x, fmt::format("block{}", number++), row);
  x = layers.hard_swish(normalised(layers, x, "last", 6 * x.shape()[1], 1));
  x = layers.hard_swish(layers.dense(pooled(b, x), "fc1", head));
  b.output("logits", layers.dense(layers.dropout(x, "dropout", 0.2), "fc2", sizes.classes));
  return graph;
}

graph::Graph build_small(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build("mobilenet-v3-small", small_rows, 1024, batch, options, seed);
}
graph::Graph build_large(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build("mobilenet-v3-large", large_rows, 1280, batch, options, seed);
}

}  // namespace

Workload mobilenet_v3_small() {
  Workload workload = classifier(224);
  workload.name = "mobilenet-v3-small";
  workload.summary = "classes of pictures, by depthwise convolutions for small devices";
  workload.build = build_small;
  workload.parameters = 2542856;
  return workload;
}

Workload mobilenet_v3_large() {
  Workload workload = classifier(224);
  workload.name = "mobilenet-v3-large";
  workload.summary = "the same with more blocks and channels";
  workload.build = build_large;
  workload.parameters = 5483032;
  return workload;
}

}  // namespace superstep::workload
