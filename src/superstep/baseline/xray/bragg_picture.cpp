#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/baseline/xray/bragg.h"
#include "superstep/page/page.h"
#include "superstep/physics/xray/bragg_error.h"

namespace superstep::baseline {
namespace {

constexpr std::int64_t shown = 24, shown_worst = 12;
constexpr int pixel_scale = 10;
constexpr double least_inset = 0.5;  // px across

page::Picture picture_of(std::int64_t index, const PeakFit& fit, const data::BraggDataset& peaks,
                         const std::string& caption) {
  const int size = peaks.patch_size();
  std::vector<float> patch(static_cast<std::size_t>(size * size));
  peaks.raw(index, patch);
  page::Picture picture{page::colored(patch, size, size, page::Colormap::viridis), caption, {}, pixel_scale};
  if (peaks.has_labels()) {
    const auto [column, row] = peaks.position(index);
    picture.marks.push_back({page::Mark::Shape::plus, column, row, "white", "true center"});
  }
  picture.marks.push_back({page::Mark::Shape::cross, fit.position.column, fit.position.row, "red", "found"});
  picture.inset = page::inset_around(picture.marks, least_inset);
  return picture;
}

std::vector<page::Picture> pictures_of(const std::vector<std::int64_t>& indices,
                                       const std::vector<PeakFit>& fits, const std::vector<double>& errors,
                                       const data::BraggDataset& peaks) {
  std::vector<page::Picture> pictures;
  for (const std::int64_t index : indices) {
    const auto at = static_cast<std::size_t>(index);
    const std::string caption = errors.empty()
                                    ? fmt::format("row {}", peaks.row(index))
                                    : fmt::format("row {}: {:.3f} px", peaks.row(index), errors[at]);
    pictures.push_back(picture_of(index, fits[at], peaks, caption));
  }
  return pictures;
}

// `count` indices evenly spread over the peaks.
std::vector<std::int64_t> spread(std::int64_t size, std::int64_t count) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < std::min(size, count); ++i)
    indices.push_back(i * size / std::min(size, count));
  return indices;
}

std::vector<std::int64_t> worst(const std::vector<double>& errors, std::int64_t count) {
  std::vector<std::int64_t> indices(errors.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto end = indices.begin() + std::min(count, static_cast<std::int64_t>(errors.size()));
  std::ranges::partial_sort(indices, end, std::greater{},
                            [&](std::int64_t i) { return errors[static_cast<std::size_t>(i)]; });
  return {indices.begin(), end};
}

void add_errors(page::Page& page, const std::vector<double>& errors) {
  std::vector<std::vector<std::string>> rows;
  for (const Metric& metric : data::position_error_metrics(errors))
    rows.push_back({metric.name, fmt::format("{:.4f} px", metric.value)});
  const std::size_t mean_row = 0;
  page.heading("Distance to the true center").begin_row().table({"metric", "value"}, rows, {&mean_row, 1});
  page::Plot plot{.title = "Errors", .x_label = "error (px)", .y_label = "peaks"};
  plot.series.push_back(page::histogram("peaks", errors, 0, 1.5 * quantile(errors, 0.995), 60));
  plot.vertical.push_back({mean(errors), "mean"});
  page.plot(plot).end_row();
}

}  // namespace

void draw_fits(const std::filesystem::path& path, BraggMethod method, const std::vector<PeakFit>& fits,
               const data::BraggDataset& peaks) {
  const std::string& name = bragg_method_names()[static_cast<std::size_t>(method)];
  const std::vector<double> errors =
      peaks.has_labels() ? position_errors(fits, peaks) : std::vector<double>{};
  page::Page page("Bragg peaks: " + name);
  page.paragraph(fmt::format("{} peaks of {} x {} px, located by the method {}.",
                             format_count(static_cast<double>(fits.size())), peaks.patch_size(),
                             peaks.patch_size(), name));
  page.paragraph("Right of every patch the square of it in which the centers lie, magnified.");
  if (!errors.empty()) add_errors(page, errors);
  page.heading("A sample of the patches")
      .pictures(pictures_of(spread(peaks.size(), shown), fits, errors, peaks));
  if (!errors.empty())
    page.heading("The worst").pictures(pictures_of(worst(errors, shown_worst), fits, errors, peaks));
  page.write(path);
}

}  // namespace superstep::baseline
