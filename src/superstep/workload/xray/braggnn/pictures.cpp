// Positions by the network beside the methods it replaces, on the same patches.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/baseline/xray/bragg_position.h"
#include "superstep/workload/xray/braggnn/braggnn.h"

namespace superstep::workload {
namespace {

constexpr std::size_t patches_each = 6;
constexpr int patch_scale = 12;
constexpr double least_inset = 0.5;  // px across
constexpr double histogram_end = 0.25;
constexpr int histogram_bins = 50;

struct BraggResult {
  std::string name;
  std::vector<double> x, y, errors;  // px, by patch
  double seconds = 0;                // for all patches on all threads
};

void add_bragg_errors(BraggResult& method, const data::BraggDataset& peaks,
                      std::span<const std::int64_t> indices) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto truth = peaks.position(indices[i]);
    method.errors.push_back(std::hypot(method.x[i] - truth[0], method.y[i] - truth[1]));
  }
}

BraggResult conventional(const char* name, baseline::BraggMethod kind, const data::BraggDataset& peaks,
                         std::span<const std::int64_t> indices, ThreadPool& pool) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const int size = peaks.patch_size();
  BraggResult method{name, std::vector<double>(indices.size()), std::vector<double>(indices.size()), {}};
  constexpr std::int64_t piece = 64, part = 32 * piece;
  Progress progress(name, static_cast<double>(count), "patches");
  const Stopwatch watch;
  for (std::int64_t first = 0; first < count; first += part) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while fitting");
    const std::int64_t last = std::min(count, first + part);
    pool.parallel_for((last - first + piece - 1) / piece, [&](std::int64_t item, int) {
      std::vector<float> patch(static_cast<std::size_t>(size * size));
      for (std::int64_t i = first + item * piece; i < std::min(last, first + (item + 1) * piece); ++i) {
        const auto at = static_cast<std::size_t>(i);
        peaks.raw(indices[at], patch);
        const auto found = baseline::locate(kind, patch, size);
        method.x[at] = found.position.column;
        method.y[at] = found.position.row;
      }
    });
    progress.update(static_cast<double>(last));
  }
  method.seconds = watch.seconds();
  add_bragg_errors(method, peaks, indices);
  return method;
}

BraggResult by_model(const data::BraggDataset& peaks, const Predictions& found) {
  BraggResult method{found.model, {}, {}, {}, found.seconds};
  const auto positions = found.outputs[0].as<float>();
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    method.x.push_back(static_cast<double>(positions[2 * i]) * peaks.patch_size());
    method.y.push_back(static_cast<double>(positions[2 * i + 1]) * peaks.patch_size());
  }
  add_bragg_errors(method, peaks, found.indices);
  return method;
}

const std::vector<std::string> bragg_header{"method", "mean px", "p50", "p75", "p95", "p99.5", "patches/s"};

std::vector<std::vector<std::string>> bragg_rows(const std::vector<BraggResult>& methods) {
  std::vector<std::vector<std::string>> rows;
  for (const BraggResult& method : methods) {
    std::vector<std::string> row{method.name};
    for (const Metric& metric : bragg_error_metrics(method.errors))
      row.push_back(fmt::format("{:.4f}", metric.value));
    row.push_back(
        method.seconds > 0 ? format_count(static_cast<double>(method.errors.size()) / method.seconds) : "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

page::Plot bragg_error_plot(const std::vector<BraggResult>& methods) {
  page::Plot plot{
      .title = "Distance from the true center", .x_label = "error, px", .y_label = "patches", .series = {}};
  for (std::size_t i = 1; i < methods.size(); ++i) {
    if (i == 2) continue;  // the two fits lie on each other
    auto series = page::histogram(methods[i].name, methods[i].errors, 0, histogram_end, histogram_bins);
    series.style = page::Series::Style::steps;
    plot.series.push_back(std::move(series));
  }
  return plot;
}

page::Picture patch_picture(const data::BraggDataset& peaks, std::int64_t index, std::size_t at,
                            const BraggResult& fit, const BraggResult& model) {
  const int size = peaks.patch_size();
  std::vector<float> patch(static_cast<std::size_t>(size * size));
  peaks.raw(index, patch);
  const auto truth = peaks.position(index);
  using Shape = page::Mark::Shape;
  page::Picture picture{.image = page::colored(patch, size, size, page::Colormap::gray),
                        .caption = fmt::format("#{}: fit {:.3f} px, network {:.3f} px", index, fit.errors[at],
                                               model.errors[at]),
                        .marks = {{Shape::plus, truth[0], truth[1], "#51cf66", "true center"},
                                  {Shape::circle, fit.x[at], fit.y[at], "#4dabf7", "pseudo-Voigt fit"},
                                  {Shape::cross, model.x[at], model.y[at], "#ff6b6b", "network"}},
                        .scale = patch_scale};
  picture.inset = page::inset_around(picture.marks, least_inset);
  return picture;
}

void add_patches(page::Page& page, const data::BraggDataset& peaks, std::span<const std::int64_t> indices,
                 const BraggResult& fit, const BraggResult& model) {
  const std::vector<Chosen> chosen = best_median_worst(model.errors, patches_each);
  for (const auto& [why, title] :
       {std::pair("median", "Patches of a usual error"), std::pair("worst", "The network's worst"),
        std::pair("best", "Its best")}) {
    std::vector<page::Picture> pictures;
    for (const Chosen& patch : chosen)
      if (std::string_view(patch.why) == why)
        pictures.push_back(patch_picture(peaks, indices[patch.at], patch.at, fit, model));
    if (!pictures.empty()) page.heading(title, 3).pictures(pictures);
  }
}

}  // namespace

std::string present_bragg(const data::BraggDataset& peaks, const Predictions& found, ThreadPool& pool,
                          page::Page& page) {
  using baseline::BraggMethod;
  std::vector<BraggResult> methods;
  for (const auto& [name, kind] :
       {std::pair("brightest pixel", BraggMethod::brightest), std::pair("centroid", BraggMethod::centroid),
        std::pair("fit, 7 parameters", BraggMethod::axis_aligned),
        std::pair("fit, 8 parameters", BraggMethod::rotated)})
    methods.push_back(conventional(name, kind, peaks, found.indices, pool));
  methods.push_back(by_model(peaks, found));
  const auto rows = bragg_rows(methods);
  const std::size_t last = rows.size() - 1;
  page.begin_row().begin_column();
  page.table(bragg_header, rows, {&last, 1});
  page.paragraph(
      "Distances between true and found centers, in pixels. The fits are least squares by Levenberg and "
      "Marquardt of a pseudo-Voigt peak with 7 (axis-aligned) and 8 (rotated) parameters. Rates are on all "
      "threads, data included.");
  page.end_column().plot(bragg_error_plot(methods)).end_row();
  page.heading("Patches", 3)
      .paragraph("Left the patch, right the square of it in which the three centers lie, magnified.");
  add_patches(page, peaks, found.indices, methods[3], methods[4]);
  TextTable table(bragg_header);
  for (const auto& row : rows) table.add_row(row);
  return table.to_string();
}

}  // namespace superstep::workload
