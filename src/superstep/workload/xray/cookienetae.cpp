// CookieNetAE: the density behind the few electrons that a ring of spectrometers counts in one shot of an
// X-ray laser, by a convolutional autoencoder (Front. Phys. 10, 957509, 2022).
//
// hist f32 [N, 1, 128, 128] -> pdf f32 [N, 1, 128, 128]: 128 angles, 128 energies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/xray/cookiebox.h"
#include "superstep/baseline/xray/cookiebox_fit.h"
#include "superstep/file/source/forms.h"
#include "superstep/op/window/pooling.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

using data::cookiebox_angles;
using data::cookiebox_bins;

constexpr std::size_t shot_pixels = std::size_t{cookiebox_angles} * cookiebox_bins;

// --- the model

graph::Graph build_cookienetae(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const std::int64_t size = options.integer("size", 8, 4096), width = options.integer("width", 1, 512);
  if (size % 8 != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} bins cannot be halved 3 times", size),
                "option size", "take a multiple of 8");
  graph::Graph graph("cookienetae");
  Builder b(graph);
  // Nine rectifiers and no normalisation: drawn by Xavier's rule, signal and gradient fade to nothing.
  Layers layers(b, seed, FirstWeights::he);
  const auto conv = [&](Var x, const std::string& name, std::int64_t channels) {
    return layers.relu(layers.conv(x, name, channels, 3, {.pads = {1, 1, 1, 1}}));
  };
  Var x = b.input("hist", ElementType::f32, {batch, 1, size, size});
  for (int level = 0; level < 3; ++level)
    x = op::max_pool(conv(x, fmt::format("encoder{}", level + 1), width << level),
                     {.kernel_shape = {2, 2}, .strides = {2, 2}})
            .values;
  x = conv(x, "encoder4", 8 * width);
  for (const auto& [name, channels] : {std::pair("up1", 8 * width), {"up2", 4 * width}, {"up3", 2 * width}})
    x = layers.relu(layers.conv_transpose(x, name, channels, 2, {{.strides = {2, 2}}}));
  x = layers.relu(layers.conv_transpose(x, "decoder", width, 3, {{.pads = {1, 1, 1, 1}}}));
  b.output("pdf", conv(x, "head", 1));
  return graph;
}

// --- quality and references: shots of 128 angles and 128 energies

std::span<const float> true_density(const Tensor& densities, std::int64_t index) {
  return densities.as<float>().subspan(static_cast<std::size_t>(index) * shot_pixels, shot_pixels);
}

std::span<const std::uint8_t> electrons_of(const Tensor& counts, std::int64_t index) {
  return counts.as<std::uint8_t>().subspan(static_cast<std::size_t>(index) * shot_pixels, shot_pixels);
}

double mean_squared_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, a.size()));
}

std::vector<Metric> quality_of_densities(const Tensor& densities, std::span<const std::int64_t> indices,
                                         const Tensor& found) {
  double square = 0, peak = 0;
  std::int64_t with_peaks = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto own = true_density(densities, indices[i]);
    const auto predicted = found.as<float>().subspan(i * shot_pixels, shot_pixels);
    square += mean_squared_error(own, predicted);
    if (const auto error = baseline::peak_energy_error(own, predicted)) {
      peak += *error;
      ++with_peaks;
    }
  }
  const auto count = [](auto number) { return static_cast<double>(std::max<decltype(number)>(1, number)); };
  return {quality_metric("mse", square / count(indices.size())),
          quality_metric("peak_error", peak / count(with_peaks), "px")};
}

// Of what `estimate` makes of the electrons of each shot.
template <class Estimate>
double error_of_method(const Tensor& counts, const Tensor& densities, const TableSamples& samples,
                       std::span<const std::int64_t> indices, Estimate estimate) {
  std::vector<double> errors(indices.size());
  samples.pool.parallel_for(static_cast<std::int64_t>(errors.size()), [&](std::int64_t item, int) {
    data::throw_if_interrupted();
    const auto at = static_cast<std::size_t>(item);
    const std::int64_t index = indices[at];
    errors[at] = mean_squared_error(estimate(electrons_of(counts, index)), true_density(densities, index));
  });
  double sum = 0;
  for (const double error : errors) sum += error;
  return sum / static_cast<double>(errors.size());
}

References blur_and_likelihood(const Tensor& counts, const Tensor& densities, const TableSamples& samples) {
  constexpr std::int64_t tuning_samples = 100;
  constexpr std::size_t fitted_shots = 100;  // a fit takes a good tenth of a second
  const auto known = static_cast<std::size_t>(std::min(tuning_samples, samples.training)) * shot_pixels;
  const baseline::Smoothing smoothing = baseline::tune_smoothing(
      counts.as<std::uint8_t>().first(known), densities.as<float>().first(known), samples.pool);
  const double floor = error_of_method(counts, densities, samples, samples.indices, [&](auto electrons) {
    return baseline::smooth_histogram(electrons, smoothing);
  });
  const auto some = some_of(samples.indices, fitted_shots);
  const double fit = error_of_method(counts, densities, samples, some, [](auto electrons) {
    return baseline::density_of(baseline::fit_shot(electrons));
  });
  return {.floor = Reference{"the best Gaussian blur", floor},
          .conventional = Reference{"the shot of maximum likelihood" +
                                        of_some(some.size(), samples.indices.size(), "shots"),
                                    fit},
          .limit = {},
          .target = floor / 2};
}

// --- pictures: electrons, densities, one row of them

constexpr int shot_scale = 2;  // CSS pixels a bin

struct ShownShot {
  std::vector<float> electrons, truth, found;
};

ShownShot shown_shot(const Tensor& counts, const Tensor& densities, const Predictions& found,
                     std::size_t at) {
  const auto electrons = electrons_of(counts, found.indices[at]);
  const auto own = true_density(densities, found.indices[at]);
  const auto predicted = found.outputs[0].as<float>().subspan(at * shot_pixels, shot_pixels);
  return {
      {electrons.begin(), electrons.end()}, {own.begin(), own.end()}, {predicted.begin(), predicted.end()}};
}

std::vector<page::Picture> pictures_of_shot(const ShownShot& shot) {
  using page::Colormap;
  const float high = std::max(1e-3f, std::ranges::max(shot.truth));
  const auto picture = [&](std::span<const float> values, float top, const char* caption, const char* what) {
    return page::Picture{
        .image = page::colored(values, cookiebox_bins, cookiebox_angles, Colormap::viridis, 0.0f, top),
        .caption = caption,
        .marks = {},
        .scale = shot_scale,
        .bar = page::ColorBar{Colormap::viridis, "0", fmt::format("{:.2g}", top), what}};
  };
  std::vector<float> difference;
  for (std::size_t i = 0; i < shot_pixels; ++i) difference.push_back(shot.found[i] - shot.truth[i]);
  const float reach = 0.5f * high;
  std::vector<page::Picture> pictures{
      picture(shot.electrons, std::max(1.0f, std::ranges::max(shot.electrons)), "electrons",
              "electrons per bin"),
      picture(shot.found, high, "predicted density", "density"),
      picture(shot.truth, high, "true density", "density"), picture(difference, high, "difference", "")};
  pictures.back().image =
      page::colored(difference, cookiebox_bins, cookiebox_angles, Colormap::difference, -reach, reach);
  pictures.back().bar = page::ColorBar{Colormap::difference, fmt::format("\u2212{:.2g}", reach),
                                       fmt::format("{:.2g}", reach), "density, predicted \u2212 true"};
  return pictures;
}

// The row with the highest true density: what was counted there, what is predicted, what is true.
page::Plot profile_of_row(const ShownShot& shot) {
  const auto highest = static_cast<std::size_t>(std::ranges::max_element(shot.truth) - shot.truth.begin());
  const std::size_t row = highest / cookiebox_bins;
  const auto series = [&](const char* label, const std::vector<float>& image, double scale,
                          page::Series::Style style) {
    page::Series line{.label = label, .x = {}, .y = {}, .low = {}, .high = {}, .style = style};
    for (std::size_t bin = 0; bin < cookiebox_bins; ++bin) {
      line.x.push_back(static_cast<double>(bin));
      line.y.push_back(scale * static_cast<double>(image[row * cookiebox_bins + bin]));
    }
    return line;
  };
  using Style = page::Series::Style;
  return {.title = fmt::format("Row {}: the density of highest peak", row),
          .x_label = "energy, bins",
          .y_label = "density",
          .series = {series("electrons / 5", shot.electrons, 1 / data::electrons_a_density, Style::bars),
                     series("predicted", shot.found, 1, Style::line),
                     series("true", shot.truth, 1, Style::line)}};
}

std::string present_shots(const Tensor& counts, const Tensor& densities, const Predictions& found,
                          page::Page& page) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < found.indices.size(); ++i)
    errors.push_back(mean_squared_error(true_density(densities, found.indices[i]),
                                        found.outputs[0].as<float>().subspan(i * shot_pixels, shot_pixels)));
  const auto finite = [](double error) { return std::isfinite(error); };
  page.plot({.title = "Mean squared error of a shot",
             .x_label = "MSE of the density",
             .y_label = "shots",
             .series = {page::histogram(
                 "", errors, 0, std::ranges::all_of(errors, finite) ? std::ranges::max(errors) : 1, 40)}});
  page.paragraph("Pictures: energy to the right, angle downwards.");
  for (const Chosen& chosen : best_median_worst(errors, 1)) {
    const ShownShot shot = shown_shot(counts, densities, found, chosen.at);
    page.heading(
        fmt::format("{}: sample {}, MSE {:.2e}", chosen.why, found.indices[chosen.at], errors[chosen.at]), 3);
    page.begin_row().pictures(pictures_of_shot(shot)).plot(profile_of_row(shot)).end_row();
  }
  return {};
}

// --- data

// The generator names data sets after their part; of a file with both the training part is read.
std::string part_in(const std::filesystem::path& path) {
  if (path.empty()) return "train";
  return data::has_array(path, "X_test") && !data::has_array(path, "X_train") ? "test" : "train";
}

// The ring has no first spectrometer and no sense, and energies no direction: what is turned by whole angles
// or mirrored is a shot as likely as the one that was drawn.
void turn_shot(const Fields&, std::int64_t, RandomStream& random, std::span<Tensor> batch, std::size_t row) {
  constexpr auto angles = std::size_t{cookiebox_angles}, bins = std::size_t{cookiebox_bins};
  const auto first = static_cast<std::ptrdiff_t>(random.below(angles) * bins);
  const bool backwards = random.below(2) == 1, mirrored = random.below(2) == 1;
  for (Tensor& images : batch.first(2)) {
    const auto image = images.as<float>().subspan(row * shot_pixels, shot_pixels);
    std::rotate(image.begin(), image.begin() + first, image.end());
    if (backwards != mirrored)
      for (std::size_t at = 0; at < shot_pixels; at += bins) std::ranges::reverse(image.subspan(at, bins));
    if (backwards) std::ranges::reverse(image);
  }
}

std::unique_ptr<Task> open_shots(const TaskSettings& settings, const Options& model) {
  const std::string part = part_in(settings.data), x = "X_" + part, y = "Y_" + part;
  return open_table_task(
      {.generator = "cookienetae",
       .settings = {"part=" + part},
       .default_samples = 2000,
       .inputs = {{x}},
       .targets = {{y}},
       .more = {},
       .augment = model.flag("vary") ? turn_shot : nullptr,
       .quality =
           [y](const Fields& fields, std::span<const std::int64_t> indices, std::span<const Tensor> outputs) {
             return quality_of_densities(fields.at(y), indices, outputs[0]);
           },
       .present = [x, y](const Fields& fields, const Predictions& found,
                         page::Page& page) { return present_shots(fields.at(x), fields.at(y), found, page); },
       .references =
           [x, y](const TableSamples& samples) {
             return blur_and_likelihood(samples.fields.at(x), samples.fields.at(y), samples);
           },
       .reference_seconds = 30,  // on two threads
       .reference_fields = {}},
      settings);
}

}  // namespace

Workload cookienetae() {
  const Shape image{1, cookiebox_angles, cookiebox_bins};
  return {
      .name = "cookienetae",
      .summary = "densities of electrons over energy and angle, from the few that a shot gives",
      .options = {{"size", "128", "angles and energies, a multiple of 8; data have 128"},
                  {"width", "16", "channels of the first level"},
                  {"vary", "no", "shots are turned and mirrored while the model is trained"}},
      .build = build_cookienetae,
      .parameters = 208641,
      .flops = 445284352,
      .inputs = {{"hist", ElementType::f32, image, "", "electrons counted at each angle and energy"}},
      .outputs = {{"pdf", ElementType::f32, image, "", "density; 5 electrons per unit are expected"}},
      .targets = {{"pdf_target", ElementType::f32, image, "", "the true density"}},
      .training = {.batch = 128,
                   .epochs = 400,
                   .loss = {{transform::LossTerm{.target = "pdf_target"}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 2.4e-3,  // 3e-4 for 16 samples
                   .rate_of_batch = 128,
                   .schedule = {.kind = Schedule::Kind::cosine}},
      .published = Recipe{.batch = 128,
                          .epochs = 400,
                          .loss = {{transform::LossTerm{.target = "pdf_target"}}},
                          .optimizer = {.kind = transform::OptimizerKind::adam},
                          .learning_rate = 3e-4,
                          .rate_of_batch = 16,
                          .source = "Front. Phys. 10, 957509 (2022)"},
      .by_default = RecipeName::quick,
      .open = open_shots,
      .metrics = {{"mse", ""}, {"peak_error", "px"}},
      .target = std::nullopt,
  };
}

}  // namespace superstep::workload
