#include "superstep/page/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace superstep::page {
namespace {

struct Point {
  double x, y;
};
using Run = std::vector<Point>;  // neighbours that are joined

constexpr double columns_per_unit = 2;  // finer than a pixel of most screens

int column(double x) { return static_cast<int>(std::floor(columns_per_unit * x)); }

// Runs of points that can be drawn, in SVG units.
std::vector<Run> runs_of(const Series& series, const Frame& frame) {
  std::vector<Run> runs(1);
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (frame.shows(series.x[i], series.y[i]))
      runs.back().push_back({frame.across(series.x[i]), frame.down(series.y[i])});
    else if (!runs.back().empty())
      runs.emplace_back();
  }
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

bool sorted_by_x(const Run& run) { return std::ranges::is_sorted(run, {}, &Point::x); }

// Of the points [begin, end) of one column: the first, the extremes in their order, the last.
void keep_outline(const Point* begin, const Point* end, Run& kept) {
  const auto [low, high] = std::minmax_element(begin, end, [](Point a, Point b) { return a.y < b.y; });
  std::set<const Point*> chosen = {begin, low, high, end - 1};
  for (const Point* point : chosen) kept.push_back(*point);
}

// The same picture from at most four points a column.
Run thinned(const Run& run) {
  if (run.size() < 2000 || !sorted_by_x(run)) return run;
  Run kept;
  for (std::size_t begin = 0, end = 0; begin < run.size(); begin = end) {
    while (end < run.size() && column(run[end].x) == column(run[begin].x)) ++end;
    keep_outline(run.data() + begin, run.data() + end, kept);
  }
  return kept;
}

std::string at(Point point) { return coordinate(point.x) + " " + coordinate(point.y); }

double smallest_gap(std::vector<double> x) {
  std::erase_if(x, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(x);
  double gap = 0;
  for (std::size_t i = 1; i < x.size(); ++i)
    if (x[i] > x[i - 1] && (gap == 0 || x[i] - x[i - 1] < gap)) gap = x[i] - x[i - 1];
  return gap;
}

struct BandColumn {
  double x, top, bottom;
};

// Low ends that a logarithmic axis cannot show lie at its foot.
std::vector<BandColumn> band_columns(const Series& series, const Frame& frame) {
  std::vector<BandColumn> band;
  for (std::size_t i = 0; i < series.low.size(); ++i) {
    if (!frame.shows(series.x[i], series.high[i])) continue;
    const bool open = !drawable(series.low[i], frame.log_y);
    const double x = frame.across(series.x[i]), top = frame.down(series.high[i]);
    const double bottom = open ? frame.top + frame.height : frame.down(series.low[i]);
    if (series.low.size() > 2000 && !band.empty() && column(band.back().x) == column(x)) {
      band.back().top = std::min(band.back().top, top);
      band.back().bottom = std::max(band.back().bottom, bottom);
    } else {
      band.push_back({x, top, bottom});
    }
  }
  return band;
}

}  // namespace

std::string coordinate(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double bar_width(const Series& series) {
  if (series.bar_width > 0) return series.bar_width;
  const double gap = smallest_gap(series.x);
  return gap > 0 ? gap : 1;
}

std::string line_path(const Series& series, const Frame& frame) {
  std::string path;
  for (const Run& run : runs_of(series, frame)) {
    const Run points = thinned(run);
    path += "M" + at(points.front());
    for (const Point& point : std::span(points).subspan(1)) path += "L" + at(point);
    if (points.size() == 1) path += "h.01";  // a lone point shows as a dot
  }
  return path;
}

std::string steps_path(const Series& series, const Frame& frame) {
  std::string path;
  for (const Run& run : runs_of(series, frame)) {
    const Run points = thinned(run);
    path += "M" + at(points.front());
    for (const Point& point : std::span(points).subspan(1))
      path += "H" + coordinate(point.x) + "V" + coordinate(point.y);
    if (points.size() == 1) path += "h.01";
  }
  return path;
}

std::string points_path(const Series& series, const Frame& frame) {
  std::string path;
  std::set<std::pair<int, int>> taken;  // by quarter of a unit: the rest would lie on top
  for (const Run& run : runs_of(series, frame))
    for (const Point& point : run)
      if (taken.emplace(std::lround(4 * point.x), std::lround(4 * point.y)).second)
        path += "M" + at(point) + "h.01";
  return path;
}

std::string bars_path(const Series& series, const Frame& frame) {
  const double half = bar_width(series) / 2;
  const double foot = frame.top + frame.height;
  const double base = frame.log_y ? foot : std::clamp(frame.down(0), frame.top, foot);
  std::string path;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!frame.shows(series.x[i], series.y[i]) || (!frame.log_y && series.y[i] == 0)) continue;
    const double from =
        drawable(series.x[i] - half, frame.log_x) ? frame.across(series.x[i] - half) : frame.left;
    const double to = frame.across(series.x[i] + half);
    path += fmt::format("M{} {}V{}H{}V{}z", coordinate(from), coordinate(base),
                        coordinate(frame.down(series.y[i])), coordinate(to), coordinate(base));
  }
  return path;
}

std::string band_path(const Series& series, const Frame& frame) {
  const std::vector<BandColumn> band = band_columns(series, frame);
  if (band.empty()) return {};
  std::string path = "M" + at({band.front().x, band.front().top});
  for (const BandColumn& part : band) path += "L" + at({part.x, part.top});
  for (std::size_t i = band.size(); i-- > 0;) path += "L" + at({band[i].x, band[i].bottom});
  return path + "z";
}

}  // namespace superstep::page
