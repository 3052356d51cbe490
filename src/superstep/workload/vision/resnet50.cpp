// ResNet-50, version 1.5: stride in the 3x3 convolution (K. He et al., Deep Residual Learning for Image
// Recognition, CVPR 2016); ResNeXt-101, whose 3x3 convolutions are in groups (S. Xie et al., CVPR 2017).
//
// image f32 [N, 3, 224, 224] -> logits f32 [N, 1000].
#include <fmt/format.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/vision/classifier.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t resnet_expansion = 4;

struct Groups {
  std::int64_t count = 1;     // of the 3x3 convolutions
  std::int64_t channels = 0;  // of each, in the first stage; 0: that of the whole, undivided
};

class Bottlenecks {
 public:
  // `last_scale`: of each block's last normalisation, 0 where blocks begin as identities (P. Goyal et al.,
  // arXiv 1706.02677).
  Bottlenecks(Layers& layers, double last_scale, Groups groups = {})
      : layers_(layers), last_scale_(last_scale), groups_(groups) {}

  // `width`: of the stage; `first` is the first stage's.
  Var block(Var x, const std::string& name, std::int64_t width, std::int64_t first, std::int64_t stride) {
    const std::int64_t channels = resnet_expansion * width;
    const std::int64_t inner =
        groups_.channels > 0 ? groups_.count * groups_.channels * (width / first) : width;
    Var y = layers_.relu(normalised(x, name, "1", inner, 1, {}));
    y = layers_.relu(normalised(y, name, "2", inner, 3,
                                {.strides = {stride, stride}, .pads = {1, 1, 1, 1}, .group = groups_.count}));
    y = layers_.batch_norm(layers_.plain_conv(y, name + ".conv3", channels, 1), name + ".norm3", 1e-5, 0.9,
                           last_scale_);
    if (stride != 1 || x.shape()[1] != channels)
      x = normalised(x, name, ".shortcut", channels, 1, {.strides = {stride, stride}});
    const op::NameScope scope(layers_.builder(), name + ".sum");
    return layers_.relu(y + x);
  }

 private:
  Var normalised(Var x, const std::string& name, const std::string& number, std::int64_t channels,
                 std::int64_t kernel, const op::ConvAttributes& attributes) {
    x = layers_.plain_conv(x, name + ".conv" + number, channels, kernel, attributes);
    return layers_.batch_norm(x, name + ".norm" + number);
  }

  Layers& layers_;
  double last_scale_;
  Groups groups_;
};

graph::Graph build_residual(const char* name, std::span<const std::int64_t> depths, Groups groups,
                            std::int64_t batch, const Options& options, std::uint64_t seed) {
  const ClassifierSizes sizes = classifier_sizes(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  Bottlenecks bottlenecks(layers, options.flag("zero-last") ? 0 : 1, groups);
  Var x = image_input(b, batch, sizes.size);
  const std::int64_t width = options.integer("width", 4, 1024);
  x = layers.plain_conv(x, "stem", width, 7, {.strides = {2, 2}, .pads = {3, 3, 3, 3}});
  x = layers.relu(layers.batch_norm(x, "stem.norm"));
  x = op::max_pool(x, {.kernel_shape = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}).values;
  for (std::size_t stage = 0; stage < depths.size(); ++stage)
    for (std::int64_t i = 0; i < depths[stage]; ++i)
      x = bottlenecks.block(x, fmt::format("stage{}.{}", stage + 1, i), width << stage, width,
                            i == 0 && stage > 0 ? 2 : 1);
  b.output("logits", layers.dense(pooled(b, x), "fc", sizes.classes));
  return graph;
}

graph::Graph build_resnet50(std::int64_t batch, const Options& options, std::uint64_t seed) {
  constexpr std::int64_t depths[] = {3, 4, 6, 3};
  return build_residual("resnet50", depths, {}, batch, options, seed);
}

graph::Graph build_resnext101(std::int64_t batch, const Options& options, std::uint64_t seed) {
  constexpr std::int64_t depths[] = {3, 4, 23, 3};
  const Groups groups{options.integer("groups", 1, 256), options.integer("group-width", 1, 256)};
  return build_residual("resnext101", depths, groups, batch, options, seed);
}

// As torchvision writes it.
std::span<const data::NameRule> resnet_names() {
  static const std::vector<data::NameRule> rules = {
      {"stem.weight", "conv1.weight"},
      {"stem.norm.*", "bn1.*"},
      {"stage#.#.conv#.weight", "layer#.#.conv#.weight"},
      {"stage#.#.norm#.*", "layer#.#.bn#.*"},
      {"stage#.#.conv.shortcut.weight", "layer#.#.downsample.0.weight"},
      {"stage#.#.norm.shortcut.*", "layer#.#.downsample.1.*"},
      {"fc.*", "fc.*"},
  };
  return rules;
}

// Within the ranges that are usual for it on ImageNet: the values of its version 1.5.
Recipe usual_recipe() {
  return {.batch = 256,
          .epochs = 90,
          .loss = loss_of_labels(0.1),
          .optimizer = {.kind = transform::OptimizerKind::sgd,
                        .momentum = 0.875,
                        .weight_decay = 1.0 / 32768,
                        .decay_vectors = false},
          .learning_rate = 0.256,
          .rate_of_batch = 256,
          .schedule = {.kind = Schedule::Kind::cosine, .warm_up_epochs = 8},
          .source = "K. He et al., CVPR 2016, as version 1.5 is usually trained"};
}

}  // namespace

Workload resnet50() {
  Workload workload = classifier(224);
  workload.published = usual_recipe();
  workload.by_default = RecipeName::quick;
  workload.name = "resnet50";
  workload.summary = "classes of pictures, by fifty layers with residual connections";
  workload.options.push_back({"width", "64", "channels of the first stage"});
  workload.options.push_back({"zero-last", "yes", "blocks begin as identities: their last scale is zero"});
  workload.build = build_resnet50;
  workload.parameters = 25557032;
  workload.flops = 8228825896;
  workload.weight_names = resnet_names;
  return workload;
}

Workload resnext101() {
  Workload workload = classifier(224);
  workload.name = "resnext101";
  workload.summary = "classes of pictures, by 101 layers with residual connections, in groups";
  workload.options.push_back({"width", "64", "channels of the first stage"});
  workload.options.push_back({"groups", "32", "of channels, in every 3x3 convolution"});
  workload.options.push_back({"group-width", "8", "channels of a group in the first stage"});
  workload.options.push_back({"zero-last", "yes", "blocks begin as identities: their last scale is zero"});
  workload.build = build_resnext101;
  workload.parameters = 88791336;
  workload.flops = 32962506920;
  workload.weight_names = resnet_names;
  return workload;
}

}  // namespace superstep::workload
