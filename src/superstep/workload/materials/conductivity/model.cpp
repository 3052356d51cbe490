// Effective conductivity of a composite battery cathode from a binary micrograph and the conductivity of its
// conducting phase (Le et al., 2024: ten blocks whose numbers of parameters rise, are largest in the eighth
// and small in the last two; 1,216 images of 256x256 for training). Layers, loss and optimiser are not
// published; they are chosen here.
//
// image f32 [N, 1, 256, 256], sigma f32 [N, 1] -> sigma_eff f32 [N, 1], in the unit of sigma.
//
// The network predicts the ratio sigma_eff / sigma, which does not depend on sigma (the equation is linear);
// the graph multiplies. It sees log10 sigma all the same, as the published inputs have it; with sees=image it
// does not, and the ratio cannot depend on sigma.
#include <fmt/format.h>

#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/materials/conductivity/conductivity.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

struct CathodeSizes {
  bool heavy, sees_sigma;
  std::int64_t side, width;  // pixels; channels of the first block
};

CathodeSizes cathode_sizes(const Options& options) {
  static const std::string sizes[] = {"light", "heavy"};
  const bool heavy = options.choice("size", sizes) == 1;
  static const std::string seen[] = {"both", "image"};
  const std::int64_t own = heavy ? 64 : 16;
  return {heavy, options.choice("sees", seen) == 0, cathode_side(options),
          options.text("width") == "auto" ? own : options.integer("width", 1, 1024)};
}

Var cathode_block(Layers& layers, Var x, int number, std::int64_t channels, bool halved) {
  const std::string name = fmt::format("block{}", number);
  x = layers.plain_conv(x, name + ".conv", channels, 3, {.pads = {1, 1, 1, 1}});
  x = layers.relu(layers.batch_norm(x, name + ".norm"));
  const op::NameScope scope(layers.builder(), name + ".pool");
  return halved ? op::max_pool(x, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values : x;
}

// A sixty-fourth of log10 sigma: chosen. The ratio does not depend on it, and what a rule like Adam's leaves
// of a weight that should be zero is of one size whatever it is multiplied by. As it is, a tenth to ten times
// of the conductor changed small ratios by a tenth.
Var with_log10(Var x, Var sigma) {
  constexpr double least = 1e-6, share = 1.0 / 64;  // mS/cm: zero has no logarithm
  Builder& b = x.builder();
  const op::NameScope scope(b, "log10");
  const Var both[] = {x,
                      op::log(op::max(sigma, b.scalar(sigma.element(), least))) * (share / std::log(10.0))};
  return op::concat(both, 1);
}

// Eight convolutions, every second one halved, averages of what is left, two dense layers. `seen`: appends
// what the network sees of sigma.
template <class Seen>
Var heavy_ratio(Layers& layers, Var x, Seen seen, std::int64_t width) {
  for (int number = 1; number <= 8; ++number)
    x = cathode_block(layers, x, number, width << ((number - 1) / 2), number % 2 == 0);
  {
    const op::NameScope scope(layers.builder(), "block9.mean");
    x = op::flatten(op::global_average_pool(x));
  }
  x = layers.relu(layers.dense(seen(x), "block9", 2 * width));
  return layers.dense(x, "block10", 1);
}

// Seven convolutions, each halved while there is more than 2x2 left, three dense layers.
template <class Seen>
Var light_ratio(Layers& layers, Var x, Seen seen, std::int64_t width) {
  constexpr int sixteenths[] = {16, 32, 64, 96, 128, 192, 256};  // of the width
  for (int number = 1; number <= 7; ++number)
    x = cathode_block(layers, x, number, std::max<std::int64_t>(1, sixteenths[number - 1] * width / 16),
                      x.shape()[2] > 2);
  x = layers.relu(layers.dense(op::flatten(x), "block8", 32 * width));
  x = layers.relu(layers.dense(seen(x), "block9", 4 * width));
  return layers.dense(x, "block10", 1);
}

graph::Graph build_conductivity(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const CathodeSizes sizes = cathode_sizes(options);
  graph::Graph graph("conductivity");
  Builder b(graph);
  Layers layers(b, seed);
  const Var image = b.input("image", ElementType::f32, {batch, 1, sizes.side, sizes.side});
  const Var sigma = b.input("sigma", ElementType::f32, {batch, 1});
  const auto seen = [&](Var x) { return sizes.sees_sigma ? with_log10(x, sigma) : x; };
  const Var ratio = sizes.heavy ? heavy_ratio(layers, image, seen, sizes.width)
                                : light_ratio(layers, image, seen, sizes.width);
  b.set_name("sigma_eff");
  b.output("sigma_eff", ratio * sigma);
  b.set_name({});
  return graph;
}

// The mean squared error of sigma_eff / sigma.
Var distance_of_ratios(transform::LossPorts& ports) {
  const Var found = ports.output("sigma_eff");
  const Var truth = ports.target("sigma_eff_target", found.type());
  const Var difference = (found - truth) / ports.input("sigma");
  return op::reduce_mean(difference * difference);
}

}  // namespace

int cathode_side(const Options& options) {
  const auto side = options.integer("side", 16, 4096);
  if ((side & (side - 1)) != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} pixels cannot be halved down to two", side),
                "option side", "take a power of two, 16 to 4096");
  return static_cast<int>(side);
}

Workload conductivity() {
  const Shape image{1, 256, 256}, one{1};
  return {
      .name = "conductivity",
      .summary = "effective conductivity of a battery cathode from a micrograph, in place of a solve",
      .options = {{"size", "light", "light: 1.4 million parameters, 0.27 GMAC; heavy: 4.8 million, 13 GMAC"},
                  {"sees", "both",
                   "image and log10 of sigma, as published; image: the ratio cannot depend on sigma"},
                  {"side", "256", "pixels per side, a power of two"},
                  {"width", "auto", "channels of the first block; auto: 16 of light, 64 of heavy"}},
      .build = build_conductivity,
      .parameters = 1411953,
      .flops = 544231093,
      .inputs = {{"image", ElementType::f32, image, "", "1 where it conducts, 0 where it insulates"},
                 {"sigma", ElementType::f32, one, "mS/cm", "conductivity of the conductor"}},
      .outputs = {{"sigma_eff", ElementType::f32, one, "mS/cm", "effective conductivity, left to right"}},
      .targets = {{"sigma_eff_target", ElementType::f32, one, "mS/cm", "the same, solved"}},
      .training = {.batch = 16,
                   .epochs = 100,
                   .loss = {.terms = {}, .own = distance_of_ratios},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .open = open_cathodes,
      .metrics = {{"r2", "", true}, {"mape", ""}, {"mae", ""}},
      .target = QualityTarget{.metric = "r2", .value = 0.95, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
