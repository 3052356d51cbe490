// The Sobel filter on frames of a pixel detector, as a convolution of a network: both gradients and their
// magnitude (ANL-23/15, 2022 AI Testbed Expeditions Report; I. Sobel, G. Feldman, 1968).
//
// frame f32 [N, 1, 800, 800], whole counts of 16 bits -> gx, gy, mag f32 [N, 1, 800, 800]. Its taps are
// parameters: they begin as what they are, or are learnt from examples (start=random).
#include "superstep/baseline/xray/sobel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/convolution.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

// --- the model

struct SobelSizes {
  std::int64_t side, window;
  bool random, half;
};

SobelSizes sobel_sizes(const Options& options) {
  static const std::string starts[] = {"exact", "random"};
  const SobelSizes sizes{options.integer("side", 9, 16384), options.integer("window", 3, 9),
                         options.choice("start", starts) == 1, options.flag("half")};
  baseline::smoothing_taps(static_cast<int>(sizes.window));  // refuses an even window
  return sizes;
}

// The least power of two that the magnitudes of a window's taps do not exceed in sum: divided by it, a
// gradient is never larger than a pixel.
double taps_a_unit(std::int64_t window) {
  std::int64_t smooth = 0, slope = 0;
  for (const auto tap : baseline::smoothing_taps(static_cast<int>(window))) smooth += tap;
  for (const auto tap : baseline::derivative_taps(static_cast<int>(window))) slope += std::abs(tap);
  return std::exp2(std::ceil(std::log2(static_cast<double>(smooth * slope))));
}

// gx, then gy; [2, 1, window, window], divided by taps_a_unit().
Tensor sobel_taps(std::int64_t window) {
  const auto smooth = baseline::smoothing_taps(static_cast<int>(window));
  const auto slope = baseline::derivative_taps(static_cast<int>(window));
  Tensor taps(ElementType::f32, {2, 1, window, window});
  for (std::int64_t y = 0; y < window; ++y)
    for (std::int64_t x = 0; x < window; ++x) {
      const auto row = static_cast<std::size_t>(y), column = static_cast<std::size_t>(x);
      taps.set(y * window + x, smooth[row] * slope[column] / taps_a_unit(window));
      taps.set((window + y) * window + x, slope[row] * smooth[column] / taps_a_unit(window));
    }
  return taps;
}

graph::Graph build_sobel(std::int64_t batch, const Options& options, std::uint64_t seed) {
  // A pixel of 16 bits, divided by this, fits into 16-bit floating point, whose largest number is 65,504.
  constexpr double pixels_a_unit = 16;
  // Of the magnitude's root: far below one count, so that it has a derivative where there is no edge.
  constexpr double flat = 1e-12;
  const SobelSizes sizes = sobel_sizes(options);
  graph::Graph graph("sobel-800");
  Builder b(graph);
  Layers layers(b, seed);
  Var frame = b.input("frame", ElementType::f32, {batch, 1, sizes.side, sizes.side});
  Var taps = sizes.random ? layers.weight("taps", {2, 1, sizes.window, sizes.window},
                                          sizes.window * sizes.window, sizes.window * sizes.window)
                          : b.state("taps", sobel_taps(sizes.window));
  b.set_name("sobel");
  const std::int64_t border = sizes.window / 2;
  frame = frame * (1 / pixels_a_unit);
  if (sizes.half) frame = op::cast(frame, ElementType::f16), taps = op::cast(taps, ElementType::f16);
  Var edges = op::conv(frame, taps, {}, {.pads = {border, border, border, border}});
  if (sizes.half) edges = op::cast(edges, ElementType::f32);
  const auto both = op::split(edges * (pixels_a_unit * taps_a_unit(sizes.window)), 1, {1, 1});
  b.output("gx", both[0]);
  b.output("gy", both[1]);
  b.output("mag", op::sqrt(both[0] * both[0] + both[1] * both[1] + flat));
  b.set_name({});
  return graph;
}

// --- the exact gradients

baseline::Gradients exact_gradients(const Tensor& frames, std::int64_t index, std::int64_t window) {
  const int height = static_cast<int>(frames.shape()[1]), width = static_cast<int>(frames.shape()[2]);
  const auto size = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const auto pixels = frames.as<std::uint16_t>().subspan(static_cast<std::size_t>(index) * size, size);
  return baseline::sobel({height, width, pixels}, static_cast<int>(window));
}

// A target: one of the two gradients of a frame.
Column gradient_column(std::vector<std::int32_t> baseline::Gradients::*which, std::int64_t window) {
  return {.field = "frame",
          .make = [which, window](const Tensor& frames, std::int64_t index, std::span<float> row) {
            const baseline::Gradients exact = exact_gradients(frames, index, window);
            if ((exact.*which).size() != row.size())
              throw Error(ErrorCode::invalid_argument,
                          fmt::format("has {} values per sample, the model takes {}", (exact.*which).size(),
                                      row.size()),
                          "field frame", "give the model its size: --set side=N");
            std::ranges::transform(exact.*which, row.begin(),
                                   [](std::int32_t value) { return static_cast<float>(value); });
          }};
}

// --- quality and references

struct EdgeErrors {
  double square = 0, magnitude = 0, size = 0;  // sums over both gradients; over magnitudes; of exact squares
  double exact = 0, pixels = 0;

  void add(const baseline::Gradients& truth, std::span<const float> gx, std::span<const float> gy) {
    for (std::size_t i = 0; i < truth.gx.size(); ++i) {
      const double x = truth.gx[i], y = truth.gy[i], dx = static_cast<double>(gx[i]) - x,
                   dy = static_cast<double>(gy[i]) - y;
      square += dx * dx + dy * dy;
      size += x * x + y * y;
      exact += std::abs(dx) < 0.5 && std::abs(dy) < 0.5 ? 1 : 0;
    }
    pixels += static_cast<double>(truth.gx.size());
  }
  void add_magnitude(const std::vector<float>& truth, std::span<const float> found) {
    for (std::size_t i = 0; i < truth.size(); ++i)
      magnitude += std::pow(static_cast<double>(found[i]) - static_cast<double>(truth[i]), 2);
  }
  double share(double sum) const { return size > 0 ? std::sqrt(sum / size) : std::sqrt(sum); }
};

std::span<const float> image_of(const Tensor& output, std::size_t at, std::size_t pixels) {
  return output.as<float>().subspan(at * pixels, pixels);
}

std::vector<Metric> quality_of_edges(const Tensor& frames, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs, std::int64_t window) {
  EdgeErrors errors;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const baseline::Gradients truth = exact_gradients(frames, indices[k], window);
    const std::size_t pixels = truth.gx.size();
    errors.add(truth, image_of(outputs[0], k, pixels), image_of(outputs[1], k, pixels));
    errors.add_magnitude(baseline::gradient_magnitude(truth), image_of(outputs[2], k, pixels));
  }
  return {quality_metric("gradient_error", errors.share(errors.square)),
          quality_metric("magnitude_error", errors.share(errors.magnitude)),
          quality_metric("exact_pixels", errors.exact / std::max(1.0, errors.pixels))};
}

// Differences of the two neighbours, times what makes a ramp right.
double error_of_differences(const TableSamples& samples, std::int64_t window) {
  const Tensor& frames = samples.fields.at("frame");
  const std::int64_t height = frames.shape()[1], width = frames.shape()[2];
  double slope = 0, smooth = 0;
  const auto taps = baseline::derivative_taps(static_cast<int>(window));
  for (std::size_t i = 0; i < taps.size(); ++i)
    slope += taps[i] * (static_cast<double>(i) - static_cast<double>(taps.size() / 2));
  for (const auto tap : baseline::smoothing_taps(static_cast<int>(window))) smooth += tap;
  const double factor = slope * smooth / 2;
  EdgeErrors errors;
  for (const std::int64_t index : samples.indices) {
    const auto at = [&](std::int64_t y, std::int64_t x) {
      return y < 0 || x < 0 || y >= height || x >= width ? 0 : frames.at((index * height + y) * width + x);
    };
    std::vector<float> gx, gy;
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        gx.push_back(static_cast<float>(factor * (at(y, x + 1) - at(y, x - 1))));
        gy.push_back(static_cast<float>(factor * (at(y + 1, x) - at(y - 1, x))));
      }
    errors.add(exact_gradients(frames, index, window), gx, gy);
  }
  return errors.share(errors.square);
}

// --- pictures

std::string present_edges(const Tensor& frames, const Predictions& found, page::Page& page,
                          std::int64_t window) {
  const int height = static_cast<int>(frames.shape()[1]), width = static_cast<int>(frames.shape()[2]);
  const std::size_t pixels = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  std::vector<double> errors;
  for (std::size_t k = 0; k < found.indices.size(); ++k) {
    EdgeErrors own;
    own.add(exact_gradients(frames, found.indices[k], window), image_of(found.outputs[0], k, pixels),
            image_of(found.outputs[1], k, pixels));
    errors.push_back(own.share(own.square));
  }
  for (const Chosen& chosen : best_median_worst(errors, 1)) {
    const auto picture = [&](std::span<const float> values, const char* caption, bool is_signed) {
      float largest = 1;
      for (const float value : values) largest = std::max(largest, std::abs(value));
      const float limit = 0.25f * largest;  // tracks at an angle are much fainter than the brightest pixel
      const page::Colormap map = is_signed ? page::Colormap::difference : page::Colormap::viridis;
      return page::Picture{
          .image = page::colored(values, width, height, map, is_signed ? -limit : 0, limit),
          .caption = caption,
          .marks = {},
          .scale = std::max(1, 256 / width),
          .bar = page::ColorBar{map, is_signed ? "\u2212" : "0", "a quarter of the largest", "counts"}};
    };
    const baseline::Gradients truth = exact_gradients(frames, found.indices[chosen.at], window);
    std::vector<float> frame, difference;
    for (std::size_t i = 0; i < pixels; ++i) {
      frame.push_back(static_cast<float>(frames.at(
          found.indices[chosen.at] * static_cast<std::int64_t>(pixels) + static_cast<std::int64_t>(i))));
      difference.push_back(image_of(found.outputs[0], chosen.at, pixels)[i] -
                           static_cast<float>(truth.gx[i]));
    }
    page.heading(fmt::format("{}: sample {}, {:.2e} of the gradient's norm is wrong", chosen.why,
                             found.indices[chosen.at], errors[chosen.at]),
                 3);
    page.pictures({picture(frame, "frame", false),
                   picture(image_of(found.outputs[0], chosen.at, pixels), "Gx", true),
                   picture(image_of(found.outputs[1], chosen.at, pixels), "Gy", true),
                   picture(image_of(found.outputs[2], chosen.at, pixels), "magnitude", false),
                   picture(difference, "Gx less the exact one", true)});
  }
  return {};
}

std::unique_ptr<Task> open_tracks(const TaskSettings& settings, const Options& model) {
  const SobelSizes sizes = sobel_sizes(model);
  const std::int64_t window = sizes.window;
  return open_table_task(
      {.generator = "sobel-800",
       .settings = {"side=" + model.text("side")},
       .default_samples = 40,
       .inputs = {{"frame"}},
       .targets = {gradient_column(&baseline::Gradients::gx, window),
                   gradient_column(&baseline::Gradients::gy, window)},
       .more = {},
       .quality =
           [window](const Fields& fields, std::span<const std::int64_t> indices,
                    std::span<const Tensor> outputs) {
             return quality_of_edges(fields.at("frame"), indices, outputs, window);
           },
       .present = [window](
                      const Fields& fields, const Predictions& found,
                      page::Page& page) { return present_edges(fields.at("frame"), found, page, window); },
       .references = [window](const TableSamples& samples) -> References {
         return {.floor = Reference{"differences of neighbors", error_of_differences(samples, window)},
                 .conventional = Reference{"the filter in whole numbers", 0},
                 .limit = {},
                 .target = {}};
       },
       .reference_seconds = 0.5,
       .reference_fields = {}},
      settings);
}

transform::LossTerm of_gradient(const char* output, const char* target) {
  // Gradients of thousands of counts: the loss is of the order of one.
  return {.kind = transform::LossKind::mse, .output = output, .target = target, .weight = 1e-6};
}

}  // namespace

Workload sobel_800() {
  const Shape image{1, 800, 800};
  const auto port = [&](const char* name, const char* meaning) {
    return PortSpec{name, ElementType::f32, image, "counts", meaning};
  };
  return {
      .name = "sobel-800",
      .summary = "edges in 800x800 frames of a pixel detector: both gradients of Sobel's filter",
      .options = {{"side", "800", "pixels per side"},
                  {"window", "3", "of the filter: 3, 5, 7 or 9"},
                  {"start", "exact", "taps begin as the filter's; random: they are to be learnt"},
                  {"half", "no", "pixels and taps in scaled 16-bit floating point"}},
      .build = build_sobel,
      .parameters = 18,
      .flops = 28160000,
      .inputs = {port("frame", "a frame of the detector, 16 bits per pixel")},
      .outputs = {port("gx", "gradient to the right"), port("gy", "gradient downwards"),
                  port("mag", "the length of both")},
      .targets = {port("gx_target", "the same in whole numbers"),
                  port("gy_target", "the same in whole numbers")},
      .training = {.batch = 4,
                   .epochs = 1,
                   .loss = {{of_gradient("gx", "gx_target"), of_gradient("gy", "gy_target")}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 3e-2,
                   .schedule = {.kind = Schedule::Kind::cosine}},
      .open = open_tracks,
      .metrics = {{"gradient_error", ""}, {"magnitude_error", ""}, {"exact_pixels", "", true}},
      .target = QualityTarget{.metric = "gradient_error", .value = 1e-3},
  };
}

}  // namespace superstep::workload
