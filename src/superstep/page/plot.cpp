// Plots as SVG. A drawing is made for a width of 520 units: about its size in CSS pixels on a desk, two
// beside each other; on a phone it shrinks and the page's stylesheet enlarges its letters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/page/curve.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

constexpr double drawing_width = 520, frame_height = 240, right_margin = 14;
constexpr double letter_width = 8, line_height = 18, tick_length = 4;
constexpr std::size_t color_count = 8;  // of the stylesheet: classes s0 to s7

// Every element of the drawing is a part with its own function; they append to one text.
struct Drawing {
  const Plot& plot;
  Frame frame;
  std::string svg;
};

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

double text_width(std::string_view text) { return letter_width * static_cast<double>(letters(text)); }

Extent x_extent(const Plot& plot) {
  Extent extent;
  const auto include = [&](double value) {
    if (drawable(value, plot.log_x)) extent.include(value);
  };
  for (const Series& series : plot.series) {
    const double half = series.style == Series::Style::bars ? bar_width(series) / 2 : 0;
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (drawable(series.y[i], plot.log_y)) include(series.x[i] - half), include(series.x[i] + half);
  }
  for (const Plot::Line& line : plot.vertical) include(line.value);
  return extent;
}

// Bars stand on zero; on a logarithmic axis the lowest still has half its value to stand on.
void include_foot(const Series& series, bool log, Extent& extent) {
  if (!log) return extent.include(0);
  for (double y : series.y)
    if (drawable(y, true)) extent.include(y / 2);
}

Extent y_extent(const Plot& plot) {
  Extent extent;
  const auto include = [&](double value) {
    if (drawable(value, plot.log_y)) extent.include(value);
  };
  for (const Series& series : plot.series) {
    for (const auto* values : {&series.y, &series.low, &series.high})
      for (std::size_t i = 0; i < values->size(); ++i)
        if (drawable(series.x[i], plot.log_x)) include((*values)[i]);
    if (series.style == Series::Style::bars && !series.y.empty()) include_foot(series, plot.log_y, extent);
  }
  for (const Plot::Line& line : plot.horizontal) include(line.value);
  return extent;
}

bool has_style(const Plot& plot, Series::Style style) {
  return std::ranges::any_of(plot.series, [&](const Series& series) { return series.style == style; });
}

// Of numbers that count something (epochs, tiles, patches) nobody wants to see a half.
bool are_whole(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) {
    return !std::isfinite(value) || (std::abs(value) < 1e15 && value == std::round(value));
  });
}

bool has_whole_x(const Plot& plot) {
  return std::ranges::all_of(plot.series, [](const Series& series) { return are_whole(series.x); });
}

bool has_whole_y(const Plot& plot) {
  return std::ranges::all_of(plot.series, [](const Series& series) {
    return are_whole(series.y) && are_whole(series.low) && are_whole(series.high);
  });
}

double widest_label(const Axis& axis) {
  double width = 0;
  for (const Tick& tick : axis.ticks()) width = std::max(width, text_width(tick.label));
  return width;
}

Frame make_frame(const Plot& plot) {
  const double x_margin = has_style(plot, Series::Style::points) ? 0.03 : 0;
  const bool data = std::ranges::any_of(plot.series, [](const Series& series) { return !series.x.empty(); });
  const Axis x(x_extent(plot), plot.log_x, 5, x_margin, data && has_whole_x(plot)),
      y(y_extent(plot), plot.log_y, 5, 0.05, data && has_whole_y(plot));
  const double left =
      12 + tick_length + 1.1 * widest_label(y) + (plot.y_label.empty() ? 0 : 1.2 * line_height);
  const double top = plot.title.empty() ? 10 : 30;
  return {x, y, left, top, drawing_width - left - right_margin, frame_height, plot.log_x, plot.log_y};
}

void add_text(std::string& svg, double x, double y, std::string_view attributes, std::string_view text) {
  if (text.empty()) return;
  svg += fmt::format("<text x=\"{}\" y=\"{}\" {}>{}</text>", coordinate(x), coordinate(y), attributes,
                     escape(text));
}

// A title that is wider than the drawing, which would be cut at both ends, is squeezed into it.
std::string title_attributes(std::string_view title) {
  constexpr double letter =
      8;  // units of the drawing, of the stylesheet's bold type: somewhat more than the mean
  std::string attributes = "class=\"title\" text-anchor=\"middle\"";
  if (letter * static_cast<double>(title.size()) > drawing_width)
    attributes +=
        fmt::format(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", coordinate(drawing_width - 4));
  return attributes;
}

void draw_grid(Drawing& drawing) {
  const Frame& f = drawing.frame;
  std::string path;
  const auto across = [&](double v) {
    path += fmt::format("M{} {}V{}", coordinate(f.across(v)), f.top, f.top + f.height);
  };
  const auto down = [&](double v) {
    path += fmt::format("M{} {}H{}", coordinate(f.left), coordinate(f.down(v)), coordinate(f.left + f.width));
  };
  for (const Tick& tick : f.x.ticks()) across(tick.value);
  for (const Tick& tick : f.y.ticks()) down(tick.value);
  drawing.svg += "<path class=\"grid\" d=\"" + path + "\"/>";
  path.clear();
  for (double value : f.x.minor_ticks()) across(value);
  for (double value : f.y.minor_ticks()) down(value);
  if (!path.empty()) drawing.svg += "<path class=\"grid minor\" d=\"" + path + "\"/>";
}

void draw_axes(Drawing& drawing) {
  const Frame& f = drawing.frame;
  const double foot = f.top + f.height;
  std::string path =
      fmt::format("M{} {}V{}H{}", coordinate(f.left), f.top, foot, coordinate(f.left + f.width));
  drawing.svg += "<g class=\"ticks-x\">";
  for (const Tick& tick : f.x.ticks()) {
    const double x = f.across(tick.value);
    path += fmt::format("M{} {}v{}", coordinate(x), foot, tick_length);
    add_text(drawing.svg, x, foot + line_height + 3, "text-anchor=\"middle\"", tick.label);
  }
  drawing.svg += "</g><g class=\"ticks-y\">";
  for (const Tick& tick : f.y.ticks()) {
    const double y = f.down(tick.value);
    path += fmt::format("M{} {}h-{}", coordinate(f.left), coordinate(y), tick_length);
    add_text(drawing.svg, f.left - tick_length - 4, y + 4.5, "text-anchor=\"end\"", tick.label);
  }
  drawing.svg += "</g><path class=\"axis\" d=\"" + path + "\"/>";
}

void draw_labels(Drawing& drawing) {
  const Frame& f = drawing.frame;
  const Plot& plot = drawing.plot;
  const double middle_x = f.left + f.width / 2, middle_y = f.top + f.height / 2;
  if (!plot.title.empty())
    add_text(drawing.svg, drawing_width / 2, 16, title_attributes(plot.title), plot.title);
  if (!plot.x_label.empty())
    add_text(drawing.svg, middle_x, f.top + f.height + 2.1 * line_height, "text-anchor=\"middle\"",
             plot.x_label);
  if (!plot.y_label.empty())
    add_text(drawing.svg, 14, middle_y,
             fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 14 {})\"", middle_y), plot.y_label);
}

std::string path_of(const Series& series, const Frame& frame) {
  switch (series.style) {
    case Series::Style::line: return line_path(series, frame);
    case Series::Style::points: return points_path(series, frame);
    case Series::Style::steps: return steps_path(series, frame);
    case Series::Style::bars: return bars_path(series, frame);
    case Series::Style::area: return {};  // its band is all there is
  }
  return {};
}

// Points are dots of a size that suits their number; every other series has square ones, for print.
std::string point_attributes(const Series& series, std::size_t index) {
  const double size = series.x.size() <= 60 ? 6 : series.x.size() <= 1000 ? 4 : 2.5;
  return fmt::format(" stroke-width=\"{}\" stroke-linecap=\"{}\"", size, index % 2 ? "square" : "round");
}

std::string class_of(const Series& series, std::size_t index) {
  const char* const kind = series.style == Series::Style::bars     ? "bars"
                           : series.style == Series::Style::points ? "points"
                           : series.style == Series::Style::area   ? "area"
                                                                   : "line";
  return fmt::format("{} s{}", kind, index % color_count);
}

// What the page's script tells of the point under the pointer. Of a long series every so many values: those
// that are left are true ones.
std::string values_of(const Series& series, const Frame& frame) {
  constexpr std::size_t most = 1000;
  std::string values;
  const std::size_t step = series.x.size() / most + 1;
  for (std::size_t i = 0; i < series.x.size(); i += step)
    if (frame.shows(series.x[i], series.y[i]))
      values += fmt::format("{}{:.6g} {:.6g}", values.empty() ? "" : " ", series.x[i], series.y[i]);
  if (values.empty()) return {};
  return fmt::format(" data-label=\"{}\" data-values=\"{}\"", escape(series.label), values);
}

// Low and high ends as the script reads them.
std::string ends_of(const Axis& axis, bool log) {
  return fmt::format("{:.9g} {:.9g} {}", axis.low(), axis.high(), log ? "log" : "lin");
}

void draw_series(Drawing& drawing) {
  const auto& all = drawing.plot.series;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::string band = band_path(all[i], drawing.frame); !band.empty())
      drawing.svg +=
          fmt::format("<path class=\"{} s{}\" d=\"{}\"/>",
                      all[i].style == Series::Style::area ? "area" : "band", i % color_count, band);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string path = path_of(all[i], drawing.frame);
    if (path.empty()) continue;
    const bool points = all[i].style == Series::Style::points;
    drawing.svg +=
        fmt::format("<path class=\"{}\"{}{} d=\"{}\"/>", class_of(all[i], i),
                    points ? point_attributes(all[i], i) : "", values_of(all[i], drawing.frame), path);
  }
}

// Where a label ends that stands at height `y`: at the right, or beside those that stand there already.
struct Label {
  double begin, end, y;
};
double label_end(double left, double right, double y, double width, const std::vector<Label>& placed) {
  constexpr double gap = 12;
  double end = right;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Label& other : placed)
      if (std::abs(other.y - y) < line_height - 2 && end > other.begin - gap && end - width < other.end + gap)
        end = other.begin - gap, moved = true;
  }
  return end - width < left ? right : end;  // no room is left beside them
}

void draw_horizontal_lines(Drawing& drawing, std::string& labels) {
  const Frame& f = drawing.frame;
  std::vector<Label> placed;
  for (const Plot::Line& line : drawing.plot.horizontal) {
    if (!drawable(line.value, f.log_y)) continue;
    const double y = f.down(line.value);
    drawing.svg += fmt::format("<path class=\"reference\" d=\"M{} {}h{}\"/>", coordinate(f.left),
                               coordinate(y), coordinate(f.width));
    if (line.label.empty()) continue;
    const double label_y = y > f.top + line_height ? y - 5 : y + 15, width = text_width(line.label);
    const double end = label_end(f.left, f.left + f.width - 4, label_y, width, placed);
    placed.push_back({end - width, end, label_y});
    add_text(labels, end, label_y, "class=\"note of-line\" text-anchor=\"end\"", line.label);
  }
}

void draw_vertical_lines(Drawing& drawing, std::string& labels) {
  const Frame& f = drawing.frame;
  double label_y = f.top + 14;
  for (const Plot::Line& line : drawing.plot.vertical) {
    if (!drawable(line.value, f.log_x)) continue;
    const double x = f.across(line.value);
    drawing.svg += fmt::format("<path class=\"reference\" d=\"M{} {}v{}\"/>", coordinate(x), f.top, f.height);
    const bool fits_right = x + text_width(line.label) < f.left + f.width;
    add_text(labels, fits_right ? x + 5 : x - 5, label_y,
             fits_right ? "class=\"note of-line\"" : "class=\"note of-line\" text-anchor=\"end\"",
             line.label);
    label_y += line_height;
  }
}

void draw_swatch(Drawing& drawing, const Series& series, std::size_t index, double x, double y) {
  const bool bars = series.style == Series::Style::bars || series.style == Series::Style::area,
             points = series.style == Series::Style::points;
  const std::string shape = bars     ? fmt::format("M{} {}h18v-10h-18z", coordinate(x), coordinate(y + 5))
                            : points ? fmt::format("M{} {}h.01", coordinate(x + 9), coordinate(y))
                                     : fmt::format("M{} {}h20", coordinate(x), coordinate(y));
  drawing.svg += fmt::format(
      "<path class=\"{}\"{} d=\"{}\"/>", class_of(series, index),
      points ? " stroke-width=\"6\" stroke-linecap=\"" + std::string(index % 2 ? "square" : "round") + "\""
             : "",
      shape);
}

// Draws the legend from `y` down, wrapped like words; returns where it ends.
double draw_legend(Drawing& drawing, double y) {
  const double left = drawing.frame.left;
  double x = left;
  bool any = false;
  for (std::size_t i = 0; i < drawing.plot.series.size(); ++i) {
    const Series& series = drawing.plot.series[i];
    if (series.label.empty()) continue;
    const double width = 26 + text_width(series.label) + 20;
    if (any && x + width > drawing_width) x = left, y += line_height;
    draw_swatch(drawing, series, i, x, y - 4.5);
    add_text(drawing.svg, x + 26, y, "", series.label);
    x += width;
    any = true;
  }
  return any ? y + line_height : y;
}

std::size_t hidden_values(const Plot& plot, const Frame& frame) {
  std::size_t hidden = 0;
  for (const Series& series : plot.series)
    for (std::size_t i = 0; i < series.x.size(); ++i) hidden += frame.shows(series.x[i], series.y[i]) ? 0 : 1;
  return hidden;
}

// Says what the picture leaves out. Empty bins of a histogram are no loss.
double draw_remark(Drawing& drawing, double y) {
  const bool empty = std::ranges::all_of(drawing.plot.series, [](const Series& s) { return s.x.empty(); });
  const std::size_t hidden = hidden_values(drawing.plot, drawing.frame);
  if (!empty && (hidden == 0 || has_style(drawing.plot, Series::Style::bars))) return y;
  const bool log = drawing.frame.log_x || drawing.frame.log_y;
  const std::string remark =
      empty ? "no data"
            : fmt::format("{} not shown ({})", hidden == 1 ? "1 value" : fmt::format("{} values", hidden),
                          log ? "not finite, or not positive on a log axis" : "not finite");
  add_text(drawing.svg, drawing.frame.left, y, "class=\"note\"", remark);
  return y + line_height;
}

}  // namespace

void check_lengths(const Series& series) {
  const std::size_t n = series.x.size();
  const bool band = !series.low.empty() || !series.high.empty();
  if (series.y.size() == n && (!band || (series.low.size() == n && series.high.size() == n))) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the series '{}' has {} x, {} y, {} low and {} high values", series.label, n,
                          series.y.size(), series.low.size(), series.high.size()));
}

Series histogram(std::string label, std::span<const double> values, double low, double high, int bins) {
  if (bins < 1 || !std::isfinite(low) || !std::isfinite(high) || low > high)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a histogram cannot have {} bins over [{}, {}]", bins, low, high));
  if (low == high) low -= 0.5, high += 0.5;
  const double width = (high - low) / bins;
  Series series{std::move(label), {}, {}, {}, {}, Series::Style::bars, width};
  for (int i = 0; i < bins; ++i) series.x.push_back(low + (i + 0.5) * width);
  series.y.assign(static_cast<std::size_t>(bins), 0);
  for (double value : values)
    if (value >= low && value <= high)
      ++series.y[static_cast<std::size_t>(std::min<double>(std::floor((value - low) / width), bins - 1))];
  return series;
}

std::vector<Series> stacked(const std::vector<Series>& shares) {
  std::vector<Series> layers;
  std::vector<double> sum;
  for (const Series& share : shares) {
    check_lengths(share);
    if (std::ranges::all_of(share.y, [](double y) { return y == 0; })) continue;
    sum.resize(share.y.size());
    Series layer{share.label, share.x, {}, sum, {}, Series::Style::area};
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += share.y[i];
    layer.y = layer.high = sum;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::string to_svg(const Plot& plot) {
  for (const Series& series : plot.series) check_lengths(series);
  Drawing drawing{plot, make_frame(plot), {}};
  draw_grid(drawing);
  // What moves when the script enlarges the drawing; labels of lines stand where they stand.
  std::string labels;
  drawing.svg += "<g class=\"marks\">";
  draw_series(drawing);
  draw_horizontal_lines(drawing, labels);
  draw_vertical_lines(drawing, labels);
  drawing.svg += "</g>";
  draw_axes(drawing);
  drawing.svg += labels;
  draw_labels(drawing);
  double end = drawing.frame.top + drawing.frame.height + (plot.x_label.empty() ? 2 : 3.3) * line_height;
  end = draw_remark(drawing, draw_legend(drawing, end));
  const Frame& f = drawing.frame;
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" data-x=\"{}\" data-y=\"{}\" "
      "data-frame=\"{} {} {} {}\">{}</svg>",
      drawing_width, coordinate(end - 6), escape(plot.title), ends_of(f.x, f.log_x), ends_of(f.y, f.log_y),
      coordinate(f.left), f.top, coordinate(f.width), f.height, drawing.svg);
}

}  // namespace superstep::page
