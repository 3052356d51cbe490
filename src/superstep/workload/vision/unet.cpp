#include "superstep/workload/vision/unet.h"

#include <fmt/format.h>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/layers.h"

namespace superstep::workload {
namespace {

Var block(Layers& layers, Var x, const std::string& name, std::int64_t channels) {
  for (int i = 1; i <= 2; ++i) {
    const std::string number = std::to_string(i);
    x = layers.plain_conv(x, name + ".conv" + number, channels, 3, {.pads = {1, 1, 1, 1}});
    x = layers.relu(layers.batch_norm(x, name + ".norm" + number));
  }
  return x;
}

struct Sizes {
  std::int64_t size, channels, width, levels;
};

Sizes sizes_of(const Options& options) {
  const Sizes sizes{options.integer("size", 8, 4096), options.integer("channels", 1, 64),
                    options.integer("width", 1, 512), options.integer("levels", 1, 6)};
  if (sizes.size % (std::int64_t{1} << sizes.levels) != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} pixels cannot be halved {} times", sizes.size, sizes.levels), "option size",
                fmt::format("take a multiple of {}", std::int64_t{1} << sizes.levels));
  return sizes;
}

Var decoded(Layers& layers, Var x, const std::vector<Var>& skips, std::int64_t width) {
  for (std::size_t level = skips.size(); level-- > 0;) {
    const std::int64_t channels = width << level;
    const Var up =
        layers.conv_transpose(x, fmt::format("up{}", level + 1), channels, 2, {{.strides = {2, 2}}});
    const Var both[] = {up, skips[level]};
    x = block(layers, op::concat(both, 1), fmt::format("decoder{}", level + 1), channels);
  }
  return x;
}

graph::Graph build(const char* name, std::int64_t batch, const Options& options, std::uint64_t seed) {
  const Sizes sizes = sizes_of(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  Var x = b.input("image", ElementType::f32, {batch, sizes.channels, sizes.size, sizes.size});
  std::vector<Var> skips;
  for (std::int64_t level = 0; level < sizes.levels; ++level) {
    skips.push_back(block(layers, x, fmt::format("encoder{}", level + 1), sizes.width << level));
    x = op::max_pool(skips.back(), {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  }
  x = block(layers, x, "bottleneck", sizes.width << sizes.levels);
  x = layers.conv(decoded(layers, x, skips, sizes.width), "head", 1, 1);
  b.set_name("head");
  b.output("mask", op::sigmoid(x));
  return graph;
}

graph::Graph build_256(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build("unet-256", batch, options, seed);
}
graph::Graph build_64(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build("unet-64", batch, options, seed);
}

Workload unet(std::int64_t size, const char* width, const char* levels) {
  return {
      .name = fmt::format("unet-{}", size),
      .summary =
          fmt::format("lesions in {0}x{0} slices of brain MRI, by a U-Net of {1} channels", size, width),
      .options = {{"size", std::to_string(size), "pixels a side; halved at every level"},
                  {"channels", "3", "of the image"},
                  {"width", width, "channels of the first level"},
                  {"levels", levels, "how often the image is halved"}},
      .build = nullptr,
      .parameters = 0,
      .inputs = {{"image", ElementType::f32, {3, size, size}, "", "pixels divided by 255"}},
      .outputs = {{"mask", ElementType::f32, {1, size, size}, "", "probability of a lesion"}},
      .targets = {{"mask_target", ElementType::f32, {1, size, size}, "", "1 where the lesion is, else 0"}},
      .training = {.batch = 16,
                   .epochs = 20,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::dice,
                                                 .target = "mask_target"}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = Schedule::cosine,
                   .warm_up_share = 0.02},
      .metrics = {{"dice", "", true}},
      .target = QualityTarget{.metric = "dice", .value = 0.85, .higher_is_better = true},
  };
}

}  // namespace

Workload unet_256() {
  Workload workload = unet(256, "32", "4");
  workload.build = build_256;
  workload.parameters = 7763041;
  return workload;
}

Workload unet_64() {
  Workload workload = unet(64, "16", "2");
  workload.build = build_64;
  workload.parameters = 117361;
  return workload;
}

}  // namespace superstep::workload
