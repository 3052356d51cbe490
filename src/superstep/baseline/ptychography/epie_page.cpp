#include "superstep/baseline/ptychography/epie_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/text.h"
#include "superstep/baseline/picture_sheet.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

// The smallest box around the scanned area.
struct Box {
  int top, left, bottom, right;  // bottom and right are one past the end
  int height() const { return bottom - top; }
  int width() const { return right - left; }
};

Box box_around(const std::vector<float>& area, int height, int width) {
  Box box{height, width, 0, 0};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      if (area[static_cast<std::size_t>(y) * width + x] > 0)
        box = {std::min(box.top, y), std::min(box.left, x), std::max(box.bottom, y + 1),
               std::max(box.right, x + 1)};
  return box.bottom > box.top ? box : Box{0, 0, height, width};
}

template <class F>
std::vector<float> cut(const std::vector<std::complex<float>>& field, const Box& box, int width, F value_of) {
  std::vector<float> values;
  for (int y = box.top; y < box.bottom; ++y)
    for (int x = box.left; x < box.right; ++x)
      values.push_back(value_of(field[static_cast<std::size_t>(y) * width + x]));
  return values;
}

float modulus(std::complex<float> value) { return std::abs(value); }
float angle(std::complex<float> value) { return std::arg(value); }
constexpr float pi = 3.14159265f;

void add_object(std::vector<page::Picture>& pictures, const std::vector<std::complex<float>>& object,
                const Box& box, int width, const std::string& which) {
  const int scale = std::max(1, 256 / std::max(box.height(), box.width()));
  pictures.push_back({page::colored(cut(object, box, width, modulus), box.width(), box.height(),
                                    page::Colormap::gray, 0.6f, 1.1f),
                      which + " amplitude",
                      {},
                      scale,
                      page::ColorBar{page::Colormap::gray, "0.6", "1.1", "amplitude"}});
  pictures.push_back({page::colored(cut(object, box, width, angle), box.width(), box.height(),
                                    page::Colormap::phase, -pi, pi),
                      which + " phase",
                      {},
                      scale,
                      page::phase_bar()});
}

std::vector<page::Picture> probe_pictures(const data::ComplexField& probe, int n) {
  const Box box{0, 0, n, n};
  const int scale = std::max(1, 256 / n);
  return {{page::colored(cut(probe, box, n, modulus), n, n, page::Colormap::viridis),
           "probe, modulus",
           {},
           scale,
           page::ColorBar{page::Colormap::viridis, "least", "most", "modulus"}},
          {page::colored(cut(probe, box, n, angle), n, n, page::Colormap::phase, -pi, pi),
           "probe, phase",
           {},
           scale,
           page::phase_bar()}};
}

page::Series over_passes(std::string label, const std::vector<double>& values) {
  page::Series series{std::move(label), {}, values, {}, {}};
  for (std::size_t pass = 1; pass <= values.size(); ++pass) series.x.push_back(static_cast<double>(pass));
  return series;
}

page::Plot error_plot(const EpieResult& result) {
  page::Plot plot{"Convergence", "pass", "sum (|F| - measured)^2 / sum measured^2", false, true};
  if (result.start)
    plot.series = {over_passes("from nothing", result.start->cold.errors),
                   over_passes("from the network's object", result.start->warm.errors)};
  else
    plot.series = {over_passes("error of the pass", result.errors)};
  return plot;
}

page::Plot phase_plot(const EpieStart& start) {
  page::Plot plot{"Beside the true object", "pass", "phase error, rad rms", false, true};
  plot.series = {over_passes("from nothing", start.cold.phase_rms),
                 over_passes("from the network's object", start.warm.phase_rms)};
  if (start.network) plot.horizontal = {{start.network->phase_rms, "the network's object"}};
  return plot;
}

void add_start(page::Page& page, const EpieResult& result, double pixel) {
  page.heading("From a network's answers");
  page.paragraph(
      "The middles of what the network says of every point, stitched to one object; then the passes that "
      "begin "
      "with it, and the same passes from an object of 1 everywhere. The common error is what both reach, a "
      "tenth more; resolution is the period at which the Fourier rings of the phases, found and true, "
      "correlate by a half.");
  page.preformatted(table_of(*result.start, result.quality, pixel));
}

}  // namespace

void write_epie_page(const std::filesystem::path& path, const EpieResult& result, const PtychoFile& file) {
  const int height = file.height(), width = file.width(), n = file.window();
  const Box box = box_around(result.area, height, width);
  std::vector<page::Picture> pictures;
  if (result.comparison) add_object(pictures, result.truth, box, width, "true");
  add_object(pictures, result.comparison ? result.comparison->aligned : result.object, box, width,
             "reconstructed");
  if (result.start) add_object(pictures, result.start->stitched.object, box, width, "the network's");
  if (is_png_path(path)) return write_picture_sheet(path, pictures, 4);
  page::Page page("Ptychographic reconstruction");
  page.paragraph(fmt::format("Scan {}, {} points, {} passes in {}; error of the last pass {:.5f}.",
                             result.scan, result.points, result.errors.size(), format_seconds(result.seconds),
                             result.errors.back()));
  if (result.comparison)
    page.paragraph(fmt::format(
        "Phase error {:.4f} rad rms and amplitude error {:.4f} rms over {} scanned pixels, after "
        "removing the global phase, the scale and a phase ramp of ({:.5f}, {:.5f}) rad a pixel.",
        result.comparison->phase_rms, result.comparison->amplitude_rms,
        format_count(result.comparison->pixels), result.comparison->ramp_y, result.comparison->ramp_x));
  page.heading("Object, scanned area").pictures(pictures);
  if (result.start) add_start(page, result, file.pixel());
  page.begin_row().begin_column();
  page.heading("Probe").pictures(probe_pictures(result.probe, n)).end_column();
  page.plot(error_plot(result));
  if (result.start && !result.start->warm.phase_rms.empty()) page.plot(phase_plot(*result.start));
  page.end_row();
  page.write(path);
}

}  // namespace superstep::baseline
