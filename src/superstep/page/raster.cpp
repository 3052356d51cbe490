// Drawn three times as large and averaged, so that lines have no stairs.
#include "superstep/page/raster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/page/curve.h"

namespace superstep::page {
namespace {

constexpr int oversampling = 3;
constexpr int glyph_width = 5, glyph_height = 7;  // of a digit, in units of `letter` pixels
constexpr int letter = oversampling;              // a glyph's pixel is one of the finished picture
constexpr double margin_right = 14, margin_top = 12, margin_bottom = 26;  // of the finished picture
constexpr double line_width = 1.6, axis_width = 1;

struct Color {
  std::uint8_t red, green, blue;
};
// Those of the stylesheet on a light page, c0 to c7, and of its ink and grid.
constexpr Color series_colors[] = {{0x1f, 0x6f, 0xc4}, {0xd9, 0x66, 0x0b}, {0x12, 0x80, 0x5c},
                                   {0xa0, 0x2c, 0x9c}, {0x7f, 0x88, 0x93}, {0x6b, 0x4a, 0x12},
                                   {0xe0, 0x52, 0x9a}, {0x0a, 0xa2, 0xb5}};
constexpr Color ink{0x5b, 0x66, 0x70}, grid{0xe6, 0xe9, 0xec};
constexpr double band_opacity = 0.18;

// What numbers on axes are written with, a row of bits each: the most significant of five is the left one.
const std::map<char, std::array<std::uint8_t, glyph_height>>& glyphs() {
  static const std::map<char, std::array<std::uint8_t, glyph_height>> table{
      {'0', {0b01110, 0b11011, 0b10001, 0b10001, 0b10001, 0b11011, 0b01110}},
      {'1', {0b00110, 0b01110, 0b10110, 0b00110, 0b00110, 0b00110, 0b00110}},
      {'2', {0b11110, 0b00011, 0b00011, 0b01110, 0b11000, 0b11000, 0b11111}},
      {'3', {0b11110, 0b00011, 0b00011, 0b01110, 0b00011, 0b00011, 0b11110}},
      {'4', {0b10010, 0b10010, 0b10010, 0b11111, 0b00010, 0b00010, 0b00010}},
      {'5', {0b11111, 0b10000, 0b10000, 0b11110, 0b00001, 0b00001, 0b11110}},
      {'6', {0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110}},
      {'7', {0b11111, 0b00001, 0b00011, 0b00010, 0b00110, 0b00100, 0b00100}},
      {'8', {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110}},
      {'9', {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100}},
      {'.', {0, 0, 0, 0, 0, 0b01100, 0b01100}},
      {',', {0, 0, 0, 0, 0b01100, 0b00100, 0b01000}},
      {'-', {0, 0, 0, 0b01110, 0, 0, 0}}};
  return table;
}

// A number on a small picture: no exponents in letters that have no glyph.
std::string number_text(double value) {
  std::string text = fmt::format("{:.4g}", value + 0.0);  // -0 is 0
  return text.find('e') == std::string::npos ? text : std::string();
}

class Canvas {
 public:
  Canvas(int width, int height) : width_(width), height_(height) {
    pixels_.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), {255, 255, 255});
  }
  void mix(int x, int y, Color color, double opacity) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    Color& under =
        pixels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)];
    const auto mixed = [&](std::uint8_t below, std::uint8_t above) {
      return static_cast<std::uint8_t>(std::lround(below + opacity * (above - below)));
    };
    under = {mixed(under.red, color.red), mixed(under.green, color.green), mixed(under.blue, color.blue)};
  }
  void box(double left, double top, double right, double bottom, Color color, double opacity = 1) {
    for (int y = round(top); y < round(bottom); ++y)
      for (int x = round(left); x < round(right); ++x) mix(x, y, color, opacity);
  }
  // A stroke with round ends.
  void line(double x0, double y0, double x1, double y1, double thick, Color color) {
    const double length = std::hypot(x1 - x0, y1 - y0);
    const int steps = std::max(1, round(length * 2));
    for (int k = 0; k <= steps; ++k) {
      const double share = static_cast<double>(k) / steps;
      dot(x0 + share * (x1 - x0), y0 + share * (y1 - y0), thick, color);
    }
  }
  void dot(double x, double y, double thick, Color color) {
    const double radius = thick / 2;
    for (int v = round(y - radius); v <= round(y + radius); ++v)
      for (int u = round(x - radius); u <= round(x + radius); ++u)
        if (std::hypot(u - x, v - y) <= radius) mix(u, v, color, 1);
  }
  // `x` is the right end of the text, `y` its middle.
  void text(std::string_view text, double x, double y, Color color) {
    double left = x - text_width(text);
    for (char c : text) {
      if (const auto glyph = glyphs().find(c); glyph != glyphs().end())
        for (int v = 0; v < glyph_height; ++v)
          for (int u = 0; u < glyph_width; ++u)
            if (glyph->second[static_cast<std::size_t>(v)] >> (glyph_width - 1 - u) & 1) {
              const double at = left + u * letter, top = y + (v - 0.5 * glyph_height) * letter;
              box(at, top, at + letter, top + letter, color);
            }
      left += (glyph_width + 1) * letter;
    }
  }
  static double text_width(std::string_view text) {
    return static_cast<double>(text.size()) * (glyph_width + 1) * letter;
  }
  Image averaged() const {
    Image image{width_ / oversampling, height_ / oversampling, {}};
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        int sum[3] = {};
        for (int v = 0; v < oversampling; ++v)
          for (int u = 0; u < oversampling; ++u) {
            const Color& c =
                pixels_[static_cast<std::size_t>(y * oversampling + v) * static_cast<std::size_t>(width_) +
                        static_cast<std::size_t>(x * oversampling + u)];
            sum[0] += c.red, sum[1] += c.green, sum[2] += c.blue;
          }
        for (int part : sum)
          image.rgb.push_back(static_cast<std::uint8_t>(part / (oversampling * oversampling)));
      }
    return image;
  }

 private:
  static int round(double value) { return static_cast<int>(std::lround(value)); }
  int width_, height_;
  std::vector<Color> pixels_;
};

void draw_axes(Canvas& canvas, const Frame& f) {
  const double foot = f.top + f.height, right = f.left + f.width, thick = axis_width * oversampling;
  for (const Tick& tick : f.y.ticks()) {
    const double y = f.down(tick.value);
    canvas.line(f.left, y, right, y, thick, grid);
    canvas.text(number_text(tick.value), f.left - 3 * letter, y, ink);
  }
  for (const Tick& tick : f.x.ticks()) {
    const double x = f.across(tick.value);
    canvas.line(x, f.top, x, foot, thick, grid);
    const std::string text = number_text(tick.value);
    canvas.text(text, x + Canvas::text_width(text) / 2, foot + 10 * letter, ink);
  }
  canvas.line(f.left, f.top, f.left, foot, thick, ink);
  canvas.line(f.left, foot, right, foot, thick, ink);
}

// Column by column between two neighbours, so that overlapping pieces are not drawn twice.
void draw_band(Canvas& canvas, const Frame& f, const Series& series, Color color) {
  for (std::size_t k = 0; k + 1 < series.x.size() && !series.low.empty(); ++k) {
    const bool shown = f.shows(series.x[k], series.low[k]) && f.shows(series.x[k], series.high[k]) &&
                       f.shows(series.x[k + 1], series.low[k + 1]) &&
                       f.shows(series.x[k + 1], series.high[k + 1]);
    if (!shown) continue;
    const double x0 = std::round(f.across(series.x[k])), x1 = std::round(f.across(series.x[k + 1]));
    for (double x = x0; x < x1; ++x) {
      const double share = (x - x0) / (x1 - x0);
      const double top = std::lerp(f.down(series.high[k]), f.down(series.high[k + 1]), share);
      const double bottom = std::lerp(f.down(series.low[k]), f.down(series.low[k + 1]), share);
      canvas.box(x, top, x + 1, bottom, color, band_opacity);
    }
  }
}

void draw_curve(Canvas& canvas, const Frame& f, const Series& series, Color color) {
  const bool points = series.style == Series::Style::points;
  for (std::size_t k = 0; k < series.x.size(); ++k) {
    if (!f.shows(series.x[k], series.y[k])) continue;
    const double x = f.across(series.x[k]), y = f.down(series.y[k]);
    if (points) canvas.dot(x, y, 3 * line_width * oversampling, color);
    if (points || k + 1 == series.x.size() || !f.shows(series.x[k + 1], series.y[k + 1])) continue;
    const double next_x = f.across(series.x[k + 1]), next_y = f.down(series.y[k + 1]);
    const bool steps = series.style == Series::Style::steps;
    canvas.line(x, y, next_x, steps ? y : next_y, line_width * oversampling, color);
    if (steps) canvas.line(next_x, y, next_x, next_y, line_width * oversampling, color);
  }
}

Frame frame_of(const Plot& plot, int width, int height) {
  Extent across, down;
  for (const Series& series : plot.series)
    for (std::size_t k = 0; k < series.x.size(); ++k) {
      if (drawable(series.x[k], plot.log_x)) across.include(series.x[k]);
      for (const auto* values : {&series.y, &series.low, &series.high})
        if (k < values->size() && drawable((*values)[k], plot.log_y)) down.include((*values)[k]);
    }
  const Axis x(across, plot.log_x, 6, 0), y(down, plot.log_y, 6, 0.05);
  double widest = 0;
  for (const Tick& tick : y.ticks()) widest = std::max(widest, Canvas::text_width(number_text(tick.value)));
  const double left = widest + 8 * letter;
  return {x,
          y,
          left,
          margin_top * oversampling,
          width * oversampling - left - margin_right * oversampling,
          (height - margin_top - margin_bottom) * oversampling,
          plot.log_x,
          plot.log_y};
}

}  // namespace

Image to_image(const Plot& plot, int width, int height) {
  if (width < 100 || height < 80 || width > 10000 || height > 10000)
    throw Error(ErrorCode::invalid_argument, fmt::format("a plot cannot have {} x {} pixels", width, height));
  for (const Series& series : plot.series) check_lengths(series);
  Canvas canvas(width * oversampling, height * oversampling);
  const Frame frame = frame_of(plot, width, height);
  draw_axes(canvas, frame);
  const auto color = [](std::size_t k) { return series_colors[k % std::size(series_colors)]; };
  for (std::size_t k = 0; k < plot.series.size(); ++k) draw_band(canvas, frame, plot.series[k], color(k));
  for (std::size_t k = 0; k < plot.series.size(); ++k) draw_curve(canvas, frame, plot.series[k], color(k));
  return canvas.averaged();
}

}  // namespace superstep::page
