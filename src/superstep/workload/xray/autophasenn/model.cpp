// AutoPhaseNN: shape and phase of a nanocrystal from its three-dimensional Bragg coherent diffraction
// pattern, learnt without labels, by what the predicted crystal would diffract (Y. Yao et al., npj Comput.
// Mater. 8, 124, 2022).
//
// diff f32 [N, 1, 64, 64, 64] -> amp, phase f32 [N, 1, 32, 32, 32]. The physics is part of the loss alone.
#include <fmt/format.h>

#include <numbers>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"

namespace superstep::workload {
namespace {

constexpr int encoder_levels = 4, decoder_levels = 3;

// How a level of the encoder halves what it sees.
enum class Halving : std::uint8_t { pooled, strided };

// Of the pattern. The root tells fringes from nothing that are a hundredth of the peak.
enum class Sees : std::uint8_t { magnitude, root };

struct AutophaseSizes {
  std::int64_t size, width;
  Halving halving;
  Sees sees;
};

AutophaseSizes autophase_sizes(const Options& options) {
  const std::int64_t size = options.integer("size", 16, 256), step = 1 << encoder_levels;
  if (size % step != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} voxels cannot be halved {} times", size, encoder_levels), "option size",
                fmt::format("take a multiple of {}", step));
  const std::string halvings[] = {"pooled", "strided"}, seen[] = {"magnitude", "root"};
  return {.size = size,
          .width = options.integer("width", 1, 256),
          .halving = static_cast<Halving>(options.choice("encoder", halvings)),
          .sees = static_cast<Sees>(options.choice("sees", seen))};
}

Var volume_conv(Layers& layers, Var x, const std::string& name, std::int64_t channels,
                std::int64_t stride = 1) {
  return layers.conv(x, name, channels, 3, {.strides = {stride, stride, stride}, .pads = {1, 1, 1, 1, 1, 1}});
}

// A convolution, its activation, and a normalisation of that.
Var normalized_conv(Layers& layers, Var x, const std::string& name, int number, std::int64_t channels,
                    std::int64_t stride = 1) {
  x = layers.leaky_relu(volume_conv(layers, x, fmt::format("{}.conv{}", name, number), channels, stride));
  return layers.batch_norm(x, fmt::format("{}.norm{}", name, number));
}

Var volume_encoder(Layers& layers, Var x, const AutophaseSizes& sizes) {
  for (int level = 1; level <= encoder_levels; ++level) {
    const std::string name = fmt::format("encoder{}", level);
    const std::int64_t channels = sizes.width << (level - 1);
    const bool strided = sizes.halving == Halving::strided;
    // Of the finest level the strided form has the second convolution alone.
    if (!strided || level > 1) x = normalized_conv(layers, x, name, 1, channels);
    x = normalized_conv(layers, x, name, 2, channels, strided ? 2 : 1);
    if (!strided) x = op::max_pool(x, {.kernel_shape = {2, 2, 2}, .strides = {2, 2, 2}}).values;
  }
  return x;
}

Var twice_as_wide(Var x) {
  Builder& b = x.builder();
  const Var scales = b.constant(Tensor::from<float>({5}, {1, 1, 2, 2, 2}));
  return b.node1(
      "Resize", {x, Var(), scales},
      {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}});
}

// Ends with one channel, before its activation.
Var crystal_decoder(Layers& layers, Var x, const std::string& name, std::int64_t width) {
  for (int level = 1; level <= decoder_levels; ++level) {
    const std::string block = fmt::format("{}{}", name, level);
    const std::int64_t channels = width << (decoder_levels - level);
    x = normalized_conv(layers, x, block, 1, channels);
    x = twice_as_wide(normalized_conv(layers, x, block, 2, channels));
  }
  return volume_conv(layers, x, name + ".out", 1);
}

graph::Graph build_autophasenn(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const AutophaseSizes sizes = autophase_sizes(options);
  graph::Graph graph("autophasenn");
  Builder b(graph);
  Layers layers(b, seed);
  const Var x = b.input("diff", ElementType::f32, {batch, 1, sizes.size, sizes.size, sizes.size});
  const Var code = volume_encoder(layers, sizes.sees == Sees::root ? op::sqrt(x) : x, sizes);
  const Var amplitude = crystal_decoder(layers, code, "amplitude", sizes.width);
  const Var phase = crystal_decoder(layers, code, "phase", sizes.width);
  b.set_name("amplitude");
  b.output("amp", op::sigmoid(amplitude));
  b.set_name("phase");
  b.output("phase", op::tanh(phase) * std::numbers::pi);
  b.set_name({});
  return graph;
}

}  // namespace

Workload autophasenn() {
  return {
      .name = "autophasenn",
      .summary = "a nanocrystal's shape and strain from its 3-D diffraction, learnt without labels",
      .options = {{"size", "64", "voxels per side of the pattern, a multiple of 16; the crystal has half"},
                  {"width", "32", "channels of the first level; 8 is trained in minutes at size 32"},
                  {"encoder", "pooled", "how a level halves: pooled, or strided convolutions"},
                  {"sees", "magnitude", "the pattern as it is (magnitude), or its root (root)"},
                  {"vary", "no", "patterns are turned and mirrored while the model is trained"}},
      .build = build_autophasenn,
      .parameters = 7003106,
      .flops = 36602451392,
      .inputs = {{"diff",
                  ElementType::f32,
                  {1, 64, 64, 64},
                  "",
                  "magnitude of the pattern / its largest, frequency zero in the middle"}},
      .outputs = {{"amp", ElementType::f32, {1, 32, 32, 32}, "", "the crystal's shape: 1 inside"},
                  {"phase", ElementType::f32, {1, 32, 32, 32}, "rad", "its displacement along Q, times Q"}},
      .targets = {},
      .training = {.batch = 16,
                   .epochs = 60,
                   .loss = {.terms = {}, .own = diffraction_loss},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .published = Recipe{.batch = 16,
                          .epochs = 60,
                          .loss = {.terms = {}, .own = diffraction_loss},
                          .optimizer = {.kind = transform::OptimizerKind::adam},
                          .learning_rate = 5e-4,
                          .schedule = {.kind = Schedule::Kind::triangular2, .final_share = 0.2, .period = 6},
                          .source = "Y. Yao et al. (2022), the cyclic one of its two schedules"},
      .by_default = RecipeName::quick,
      .open = open_autophasenn,
      .answer = build_crystal_answer,
      .metrics = {{"diffraction_l1", ""},
                  {"chi2", ""},
                  {"iou", "", true},
                  {"phase_error", "rad"},
                  {"ssim", "", true}},
      .target = std::nullopt,
  };
}

}  // namespace superstep::workload
