// BraggNN: the centre of a diffraction peak to a fraction of a pixel, from an 11x11 patch of the detector.
//
// Z. Liu et al., "BraggNN: fast X-ray Bragg peak analysis using deep learning", IUCrJ 9, 104-113 (2022),
// arXiv 2008.08198.
//
// patch f32 [N, 1, p, p], scaled to [0, 1] -> ploc f32 [N, 2]: column and row of the centre, counted from
// the patch's first pixel, divided by p.
//
// Options: patch (odd, 9 to 23), hidden (the widths of the fully connected layers: "16-8-4-2",
// "32-16-8-4", "64-32-16-8"), centred.
//
// With `centred` the network gives the place relative to the middle of the patch, and the graph adds 0.5.
// Fitting that sum to labels in [0, 1) is the same as fitting the network to labels minus 0.5, which is
// how the network is trained best; but what goes in and what comes out is in [0, 1), as in data files,
// whichever way a model was trained.
#include <fmt/format.h>

#include <charconv>

#include "superstep/base/text.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"
#include "superstep/workload/xray/braggnn/braggnn.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t bragg_channels = 64, inner_channels = bragg_channels / 2;

std::int64_t patch_of(const Options& options) {
  const std::int64_t patch = options.integer("patch", 9, 23);
  if (patch % 2 == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("a patch of {} pixels has no middle pixel", patch),
                "option patch", "take an odd number from 9 to 23");
  return patch;
}

std::vector<std::int64_t> hidden_of(const Options& options) {
  std::vector<std::int64_t> widths;
  for (const std::string& part : split(options.text("hidden"), '-')) {
    std::int64_t width = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), width);
    if (code != std::errc() || end != part.data() + part.size() || width < 1 || width > 4096)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a list of widths", options.text("hidden")), "option hidden",
                  "for example hidden=16-8-4-2");
    widths.push_back(width);
  }
  return widths;
}

// Every position of the picture looks at every other (non-local block in its embedded Gaussian form; Wang
// et al., CVPR 2018): with positions as rows,
//   x + out(softmax(theta^T phi) g^T).
Var non_local_block(Layers& layers, Var x) {
  const std::int64_t batch = x.shape()[0], side = x.shape()[2], positions = side * side;
  const Var theta = layers.conv(x, "attention.theta", inner_channels, 1);
  const Var phi = layers.conv(x, "attention.phi", inner_channels, 1);
  const Var g = layers.conv(x, "attention.g", inner_channels, 1);
  Var picture;
  {
    const op::NameScope scope(layers.builder(), "attention");
    const auto rows = [&](Var y) { return op::reshape(y, {batch, inner_channels, positions}); };
    const Var scores = op::matmul(op::transpose(rows(theta), {0, 2, 1}), rows(phi));
    const Var mixed = op::matmul(op::softmax(scores, -1), op::transpose(rows(g), {0, 2, 1}));
    picture = op::reshape(op::transpose(mixed, {0, 2, 1}), {batch, inner_channels, side, side});
  }
  const Var out = layers.conv(picture, "attention.out", bragg_channels, 1);
  const op::NameScope scope(layers.builder(), "attention.sum");
  return out + x;
}

graph::Graph build_braggnn(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const std::int64_t patch = patch_of(options);
  graph::Graph graph("braggnn");
  Builder b(graph);
  Layers layers(b, seed);
  const Var x = b.input("patch", ElementType::f32, {batch, 1, patch, patch});
  Var y = layers.conv(x, "conv1", bragg_channels, 3);
  y = layers.leaky_relu(non_local_block(layers, y));
  y = layers.leaky_relu(layers.conv(y, "conv2", 32, 3));
  y = layers.leaky_relu(layers.conv(y, "conv3", 8, 3));
  y = op::flatten(y);
  int number = 1;
  for (std::int64_t width : hidden_of(options))
    y = layers.leaky_relu(layers.dense(y, fmt::format("fc{}", number++), width));
  y = layers.dense(y, fmt::format("fc{}", number), 2);
  if (options.flag("centred")) {
    b.set_name("from_centre");
    y = y + 0.5;
  }
  b.output("ploc", y);
  return graph;
}

}  // namespace

Workload braggnn() {
  return {
      .name = "braggnn",
      .summary = "sub-pixel centers of X-ray diffraction peaks from 11x11 patches",
      .options = {{"patch", "11", "pixels per side, odd, 9 to 23"},
                  {"hidden", "16-8-4-2", "widths of the fully connected layers"},
                  {"centred", "yes", "the network gives the place relative to the middle of the patch"}},
      .build = build_braggnn,
      .parameters = 33172,
      .flops = 4253421,
      .inputs = {{"patch", ElementType::f32, {1, 11, 11}, "", "a peak's pixels, scaled to [0, 1]"}},
      .outputs = {{"ploc", ElementType::f32, {2}, "patch sizes", "column and row of the peak's center"}},
      .targets = {{"ploc", ElementType::f32, {2}, "patch sizes", "column and row of the peak's center"}},
      // Smaller batches and a higher rate that decays to zero pass the target in a twentieth of the epochs.
      .training = {.batch = 128,
                   .epochs = 24,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 2e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .published = Recipe{.batch = 512,
                          .epochs = 500,
                          .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                          .optimizer = {.kind = transform::OptimizerKind::adam},
                          .learning_rate = 3e-4,
                          .source = "Z. Liu et al., IUCrJ 9 (2022)"},
      .by_default = RecipeName::quick,
      .open = open_bragg_peaks,
      .metrics = {{"error_px_mean", "px"},
                  {"error_px_p50", "px"},
                  {"error_px_p75", "px"},
                  {"error_px_p95", "px"},
                  {"error_px_p995", "px"}},
      // Floor: the centroid; ceiling: the least-squares fit of a pseudo-Voigt peak, on the same patches.
      .target = QualityTarget{.metric = "error_px_mean", .value = 0.040, .floor = 0.070, .ceiling = 0.031},
  };
}

}  // namespace superstep::workload
