#include "superstep/baseline/materials/conductivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/in_file.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/image_stack.h"
#include "superstep/file/source/array_file.h"
#include "superstep/page/page.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

struct Sections {
  std::int64_t count = 0;
  int height = 0, width = 0;
  std::vector<std::uint8_t> conducts;  // [count, height, width]
  std::vector<double> sigma;           // of the conductor, per image
  std::vector<double> label;           // sigma_eff found in the file; may be empty

  std::size_t pixels() const { return static_cast<std::size_t>(height) * static_cast<std::size_t>(width); }
  std::span<const std::uint8_t> image(std::int64_t k) const {
    return std::span(conducts).subspan(static_cast<std::size_t>(k) * pixels(), pixels());
  }
};

// Pixels above the threshold conduct. Without a threshold an image must have at most two values, and the
// larger of them conducts.
void binarize(const Tensor& stack, const Options& options, const std::string& where, Sections& sections) {
  const bool given = options.text("threshold") != "auto";
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::int64_t i = 0; i < stack.element_count(); ++i) {
    low = std::min(low, stack.at(i));
    high = std::max(high, stack.at(i));
  }
  const double threshold = given ? options.number("threshold", -1e300, 1e300) : (low + high) / 2;
  const bool invert = options.flag("invert");
  for (std::int64_t i = 0; i < stack.element_count(); ++i) {
    const double value = stack.at(i);
    if (!given && value != low && value != high)
      throw Error(ErrorCode::bad_file,
                  fmt::format("is not binary: it has the values {}, {} and {}", low, value, high), where,
                  "give the level above which pixels conduct: --set threshold=VALUE");
    // One value only: 0 is a wholly insulating stack, anything else a wholly conducting one.
    const bool conducts = low == high && !given ? value != 0 : value > threshold;
    sections.conducts.push_back(conducts != invert);
  }
}

std::optional<std::vector<double>> column_of_hdf5(const std::filesystem::path& path, const std::string& name,
                                                  std::int64_t count) {
  const data::FileForm form = data::form_of(path);
  if (form == data::FileForm::tiff || form == data::FileForm::npy) return {};
  const data::ArrayFile file(path);
  if (!file.contains(name)) return {};
  const std::int64_t shape[] = {count};
  const Tensor values = file.read(name, ElementType::f64, shape);
  return std::vector<double>(values.as<double>().begin(), values.as<double>().end());
}

Sections read_sections(const Request& request, const Options& options) {
  const Tensor stack = data::read_image_stack(request.input, options.text("data-set"));
  Sections sections;
  sections.count = stack.shape()[0];
  sections.height = static_cast<int>(stack.shape()[1]);
  sections.width = static_cast<int>(stack.shape()[2]);
  binarize(stack, options, request.input.string(), sections);
  const auto count = static_cast<std::size_t>(sections.count);
  if (options.text("sigma") != "file") {
    sections.sigma.assign(count, options.number("sigma", 0, 1e30));
    return sections;
  }
  sections.sigma =
      column_of_hdf5(request.input, "sigma", sections.count).value_or(std::vector<double>(count, 1.0));
  sections.label = column_of_hdf5(request.input, "sigma_eff", sections.count).value_or(std::vector<double>{});
  return sections;
}

struct Solved {
  data::Conductivity result;
  double seconds = 0, fraction = 0;
};

std::vector<Solved> solve_all(const Sections& sections, const Request& request, const Options& options) {
  const double insulator = options.number("insulator", 0, 1);
  const data::ConductivitySettings settings{.tolerance = options.number("tolerance", 1e-14, 1e-1)};
  std::vector<Solved> solved(static_cast<std::size_t>(sections.count));
  Progress progress("solving", static_cast<double>(sections.count), "images");
  std::atomic<std::int64_t> done{0};
  request.pool->parallel_for(sections.count, [&](std::int64_t k, int worker) {
    data::throw_if_interrupted();
    Solved& own = solved[static_cast<std::size_t>(k)];
    const auto image = sections.image(k);
    const double sigma = sections.sigma[static_cast<std::size_t>(k)];
    const Stopwatch watch;
    try {
      own.result = data::effective_conductivity(image, sections.width, sections.height, sigma,
                                                sigma * insulator, settings);
    } catch (const Error& error) {
      throw in_file(error, fmt::format("{}: image {}", request.input.string(), k));
    }
    own.seconds = watch.seconds();
    own.fraction =
        static_cast<double>(std::count(image.begin(), image.end(), 0)) / static_cast<double>(image.size());
    ++done;
    if (worker == 0) progress.update(static_cast<double>(done));
  });
  return solved;
}

void write_table(const std::filesystem::path& path, const Sections& sections,
                 const std::vector<Solved>& solved) {
  data::CsvWriter table(path, {"image", "sigma", "sigma_eff", "ratio", "percolates", "fraction",
                               "sigma_eff_right", "iterations", "residual"});
  for (std::size_t k = 0; k < solved.size(); ++k) {
    const data::Conductivity& result = solved[k].result;
    const double sigma = sections.sigma[k];
    table.cell(static_cast<std::int64_t>(k)).cell(sigma).cell(result.effective);
    table.cell(sigma > 0 ? result.effective / sigma : 0.0).cell(static_cast<int>(result.percolates));
    table.cell(solved[k].fraction)
        .cell(result.at_right)
        .cell(result.iterations)
        .cell(result.residual)
        .end_row();
  }
  table.close();
}

// The largest difference between the currents through the two electrodes, relative to the conductivity of
// the conductor.
double worst_mismatch(const Sections& sections, const std::vector<Solved>& solved) {
  double worst = 0;
  for (std::size_t k = 0; k < solved.size(); ++k)
    if (solved[k].result.percolates)
      worst = std::max(worst,
                       std::abs(solved[k].result.effective - solved[k].result.at_right) / sections.sigma[k]);
  return worst;
}

void add_label_errors(const Sections& sections, const std::vector<Solved>& solved, Report& report) {
  double sum = 0, worst = 0;
  for (std::size_t k = 0; k < solved.size(); ++k) {
    const double error = std::abs(solved[k].result.effective - sections.label[k]) / sections.sigma[k];
    sum += error;
    worst = std::max(worst, error);
  }
  report.metrics.push_back({"error_mean", sum / static_cast<double>(solved.size()), ""});
  report.metrics.push_back({"worst_error", worst, ""});
}

Report summarize(const Sections& sections, const std::vector<Solved>& solved, double seconds, int threads) {
  std::vector<double> times;
  double percolating = 0;
  for (const Solved& one : solved) {
    times.push_back(one.seconds);
    percolating += one.result.percolates;
  }
  Report report;
  report.metrics = {{"throughput", static_cast<double>(solved.size()) / seconds, "samples/s"},
                    {"latency_p50", quantile(times, 0.5), "s"},
                    {"latency_p99", quantile(times, 0.99), "s"},
                    {"percolating", percolating / static_cast<double>(solved.size()), ""},
                    {"electrode_mismatch", worst_mismatch(sections, solved), ""}};
  if (!sections.label.empty()) add_label_errors(sections, solved, report);
  TextTable table(
      {"images", "size", "median solve", "99 %", "images/s", "threads", "percolate", "left - right"});
  table.add_row({format_count(static_cast<double>(solved.size())),
                 fmt::format("{} x {}", sections.width, sections.height),
                 format_seconds(quantile(times, 0.5)), format_seconds(quantile(times, 0.99)),
                 fmt::format("{:.1f}", static_cast<double>(solved.size()) / seconds),
                 fmt::format("{}", threads),
                 fmt::format("{:.1f} %", 100 * percolating / static_cast<double>(solved.size())),
                 fmt::format("{:.1e}", worst_mismatch(sections, solved))});
  report.text = table.to_string();
  return report;
}

page::Image as_picture(std::span<const std::uint8_t> image, int width, int height) {
  const std::vector<float> values(image.begin(), image.end());
  return page::colored(values, width, height, page::Colormap::gray, 0.0f, 1.0f);
}

// The share of the current density in every pixel, on a scale of its 99th percentile.
page::Image current_picture(const Sections& sections, std::int64_t k, double insulator) {
  const int w = sections.width, h = sections.height;
  std::vector<double> sigma;
  for (const std::uint8_t conducts : sections.image(k)) sigma.push_back(conducts ? 1.0 : insulator);
  const auto solved = data::effective_conductivity(sigma, w, h, {.keep_potential = true});
  const std::vector<float> density = data::current_density(solved, sigma, w, h);
  const double top = quantile(std::vector<double>(density.begin(), density.end()), 0.99);
  return page::colored(density, w, h, page::Colormap::viridis, 0.0f,
                       top > 0 ? static_cast<float>(top) : 1.0f);
}

page::Plot fraction_plot(const Sections& sections, const std::vector<Solved>& solved) {
  page::Series images{.label = "images", .style = page::Series::Style::points};
  page::Series bound{.label = "upper bound (Hashin-Shtrikman)"}, medium{.label = "effective medium, 1 - 2 f"};
  for (std::size_t k = 0; k < solved.size() && k < 4000; ++k) {
    if (!(sections.sigma[k] > 0)) continue;
    images.x.push_back(solved[k].fraction);
    images.y.push_back(solved[k].result.effective / sections.sigma[k]);
  }
  for (int i = 0; i <= 50; ++i) {
    const double f = i / 50.0;
    bound.x.push_back(f), bound.y.push_back((1 - f) / (1 + f));
    medium.x.push_back(f), medium.y.push_back(std::max(0.0, 1 - 2 * f));
  }
  page::Plot plot{.title = "Effective conductivity",
                  .x_label = "area fraction of the insulator",
                  .y_label = "sigma_eff / sigma"};
  plot.series = {images, bound, medium};
  return plot;
}

void write_page(const Request& request, const Options& options, const Sections& sections,
                const std::vector<Solved>& solved, const Report& report) {
  page::Page page("Effective conductivity by the finite-volume solve");
  page.begin_row().preformatted(report.text).plot(fraction_plot(sections, solved)).end_row();
  std::vector<page::Picture> pictures;
  for (std::int64_t k = 0; k < std::min<std::int64_t>(6, sections.count); ++k) {
    const double sigma = sections.sigma[static_cast<std::size_t>(k)];
    const data::Conductivity& result = solved[static_cast<std::size_t>(k)].result;
    const std::string ratio =
        result.percolates ? fmt::format("ratio {:.4f}", result.effective / sigma) : "no path";
    pictures.push_back({as_picture(sections.image(k), sections.width, sections.height),
                        fmt::format("image {}: {}", k, ratio)});
    pictures.push_back({current_picture(sections, k, options.number("insulator", 0, 1)),
                        fmt::format("image {}: current density", k)});
    pictures.back().bar =
        page::ColorBar{page::Colormap::viridis, "0", "the largest but 1 %", "current density of an image"};
  }
  page.heading("Images and where the current flows").pictures(pictures);
  page.write(request.picture);
}

Report run(const Request& request, const Options& options) {
  const Sections sections = read_sections(request, options);
  const Stopwatch watch;
  const std::vector<Solved> solved = solve_all(sections, request, options);
  const Report report = summarize(sections, solved, watch.seconds(), request.pool->threads());
  if (!request.output.empty()) write_table(request.output, sections, solved);
  if (!request.picture.empty()) write_page(request, options, sections, solved, report);
  return report;
}

}  // namespace

Entry conductivity_solver() {
  return {"conductivity",
          "finite-volume solve of the potential, multigrid-preconditioned conjugate gradients",
          {{"data-set", "image", "name of the images in an HDF5 file"},
           {"sigma", "file", "conductivity of the conductor; file: data set sigma of an HDF5 file, else 1"},
           {"threshold", "auto", "pixels above it conduct; auto: the images are binary"},
           {"invert", "no", "pixels at or below the threshold conduct instead"},
           {"insulator", "0", "conductivity of the insulator relative to the conductor; 0 is perfect"},
           {"tolerance", "1e-8", "relative residual of the solve"}},
          run};
}

}  // namespace superstep::baseline
