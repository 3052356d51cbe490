#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/baseline/ptychography/autophase_run.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

constexpr float pi = 3.14159265f;

// The plane through the middle, perpendicular to `axis`.
template <class F>
std::vector<float> middle_slice(const Field& field, int n, int axis, F value_of) {
  std::vector<float> slice;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      const int z = axis == 0 ? n / 2 : row, y = axis == 1 ? n / 2 : (axis == 0 ? row : column);
      const int x = axis == 2 ? n / 2 : column;
      slice.push_back(value_of(field[static_cast<std::size_t>((z * n + y) * n + x)]));
    }
  return slice;
}

page::Plot starts_plot(std::vector<double> chi2) {
  std::sort(chi2.begin(), chi2.end());
  page::Series series{"chi2 of a start", {}, chi2, {}, {}, page::Series::Style::points};
  for (std::size_t start = 1; start <= chi2.size(); ++start) series.x.push_back(static_cast<double>(start));
  page::Plot plot{"Starts, best first", "start", "chi2"};
  plot.series = {series};
  return plot;
}

}  // namespace

void add_object_slices(std::vector<page::Picture>& pictures, const Field& field, int n,
                       const std::string& which) {
  const int scale = std::max(1, 128 / n);
  const char* planes[] = {"y-x", "z-x", "z-y"};
  for (int axis = 0; axis < 3; ++axis) {
    const auto modulus = middle_slice(field, n, axis, [](auto value) { return std::abs(value); });
    pictures.push_back({page::colored(modulus, n, n, page::Colormap::gray, 0.0f, 1.2f),
                        fmt::format("{} modulus, plane {}", which, planes[axis]),
                        {},
                        scale,
                        page::ColorBar{page::Colormap::gray, "0", "1.2", "modulus"}});
  }
  for (int axis = 0; axis < 3; ++axis) {
    const auto phase = middle_slice(
        field, n, axis, [](auto value) { return std::abs(value) > 0.3f ? std::arg(value) : 0.0f; });
    pictures.push_back({page::colored(phase, n, n, page::Colormap::phase, -pi, pi),
                        fmt::format("{} phase, plane {}", which, planes[axis]),
                        {},
                        scale,
                        page::phase_bar()});
  }
}

void write_retrieval_page(const std::filesystem::path& path, const CrystalResult& result, int n) {
  page::Page page("Phase retrieval");
  page.paragraph(fmt::format("Crystal {}: chi2 {:.5f}, the best of {} starts, {} of one thread.",
                             result.sample, result.chi2, result.start_chi2.size(),
                             format_seconds(result.seconds)));
  if (result.comparison) {
    page.paragraph(fmt::format(
        "Intersection over union {:.3f}, phase error {:.3f} rad rms, structural similarity {:.4f}, "
        "after removing global phase and shift{}.",
        result.comparison->iou, result.comparison->phase_rms, result.comparison->ssim,
        result.twin ? " and taking the twin" : ""));
    std::vector<page::Picture> truth;
    add_object_slices(truth, result.truth, n, "true");
    page.heading("True").pictures(truth);
  }
  std::vector<page::Picture> found;
  add_object_slices(found, result.object, n, "retrieved");
  page.heading("Retrieved").pictures(found);
  page.plot(starts_plot(result.start_chi2));
  page.write(path);
}

}  // namespace superstep::baseline
