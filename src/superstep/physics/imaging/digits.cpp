#include "superstep/physics/imaging/digits.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "superstep/physics/random_field.h"

namespace superstep::data {
namespace {

constexpr int oversampling = 4;
constexpr int canvas_px = 24;  // holds the box and softened edges; the image is cut out around its centre
constexpr int canvas = canvas_px * oversampling;
constexpr int field_px = 36;  // holds any glyph before it is fitted into the box
constexpr double box_px = 20, glyph_px = 17;
constexpr double jitter = 0.035;  // of control points, in units of the glyph
// Displacements of alpha times white noise in [-1, 1] blurred with sigma (P. Simard et al., ICDAR 2003).
constexpr double elastic_sigma_px = 4, elastic_alpha_px = 6;
constexpr int segments_a_curve = 10;

struct Point {
  double x = 0, y = 0;
};
// Joined cubic Bezier curves: point, control, control, point, control, control, point ... in the unit square,
// y downwards.
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

Stroke line(Point a, Point b) {
  const auto between = [&](double t) { return Point{a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)}; };
  return {a, between(1 / 3.0), between(2 / 3.0), b};
}

const std::array<Glyph, 10>& glyphs() {
  static const std::array<Glyph, 10> table = {{
      {{{.5, 0}, {.98, 0}, {.98, 1}, {.5, 1}, {.02, 1}, {.02, 0}, {.5, 0}}},
      {line({.3, .22}, {.55, 0}), line({.55, 0}, {.55, 1})},
      {{{.12, .25}, {.12, -.06}, {.9, -.12}, {.88, .3}, {.86, .58}, {.35, .8}, {.1, 1}},
       line({.1, 1}, {.92, 1})},
      {{{.12, .1}, {.45, -.1}, {.92, .02}, {.85, .27}, {.8, .45}, {.55, .48}, {.4, .48}},
       {{.4, .48}, {1, .44}, {1.02, .98}, {.5, 1}, {.32, 1}, {.18, .96}, {.1, .86}}},
      {line({.6, 0}, {.1, .66}), line({.1, .66}, {.95, .66}), line({.7, .36}, {.7, 1})},
      {line({.86, 0}, {.25, 0}),
       line({.25, 0}, {.2, .44}),
       {{.2, .44}, {.6, .3}, {1, .48}, {.87, .78}, {.76, 1.02}, {.3, 1.06}, {.1, .88}}},
      {{{.78, .02},
        {.4, .1},
        {.1, .48},
        {.12, .75},
        {.15, 1.1},
        {.9, 1.08},
        {.88, .72},
        {.85, .42},
        {.3, .45},
        {.14, .74}}},
      {line({.1, .02}, {.9, .02}), {{.9, .02}, {.72, .3}, {.5, .6}, {.42, 1}}},
      {{{.5, .48}, {.02, .36}, {.1, 0}, {.5, 0}, {.9, 0}, {.98, .36}, {.5, .48}},
       {{.5, .48}, {-.06, .62}, {.04, 1}, {.5, 1}, {.96, 1}, {1.06, .62}, {.5, .48}}},
      {{{.86, .28},
        {.85, -.06},
        {.14, -.1},
        {.14, .28},
        {.14, .6},
        {.8, .56},
        {.86, .28},
        {.88, .5},
        {.8, .8},
        {.64, 1}}},
  }};
  return table;
}

Point on_curve(std::span<const Point> c, double t) {
  const double s = 1 - t;
  const double w[] = {s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t};
  Point p;
  for (std::size_t k = 0; k < 4; ++k) p.x += w[k] * c[k].x, p.y += w[k] * c[k].y;
  return p;
}

using Polyline = std::vector<Point>;

// The strokes as polylines, control points jittered; unit square about its centre.
std::vector<Polyline> trace(RandomStream& random, const Glyph& glyph) {
  std::vector<Polyline> lines;
  for (Stroke stroke : glyph) {
    for (Point& p : stroke) p = {p.x - 0.5 + jitter * random.normal(), p.y - 0.5 + jitter * random.normal()};
    Polyline points{stroke.front()};
    for (std::size_t first = 0; first + 3 < stroke.size(); first += 3)
      for (int k = 1; k <= segments_a_curve; ++k)
        points.push_back(
            on_curve(std::span(stroke).subspan(first, 4), static_cast<double>(k) / segments_a_curve));
    lines.push_back(std::move(points));
  }
  return lines;
}

template <class Map>
void transform(std::vector<Polyline>& lines, Map map) {
  for (Polyline& line : lines)
    for (Point& p : line) p = map(p);
}

// Glyph units to pixels about the centre of the canvas.
void place(std::vector<Polyline>& lines, const Digit& digit) {
  const double c = std::cos(digit.rotation), s = std::sin(digit.rotation), size = glyph_px * digit.scale;
  transform(lines, [&](Point p) {
    const double x = 0.75 * p.x + digit.shear * p.y, y = p.y;  // digits are higher than wide
    return Point{size * (c * x - s * y), size * (s * x + c * y)};
  });
}

class ElasticField {
 public:
  explicit ElasticField(RandomStream& random) : x_(noise(random)), y_(noise(random)) {}
  Point displacement(Point p) const { return {at(x_, p), at(y_, p)}; }

 private:
  static std::vector<float> noise(RandomStream& random) {
    std::vector<float> field(field_px * field_px);
    for (float& value : field) value = static_cast<float>(elastic_alpha_px * random.uniform(-1, 1));
    blur(field, field_px, field_px, gaussian_kernel(elastic_sigma_px), Border::periodic);
    return field;
  }
  // Nearest pixel: the field is smooth on that scale.
  static double at(const std::vector<float>& field, Point p) {
    const auto index = [](double v) {
      return std::clamp(static_cast<int>(v + field_px / 2.0), 0, field_px - 1);
    };
    return field[static_cast<std::size_t>(index(p.y) * field_px + index(p.x))];
  }
  std::vector<float> x_, y_;
};

// Shrinks what is larger than the box, pen included.
void fit_box(std::vector<Polyline>& lines, double width_px) {
  Point low{1e9, 1e9}, high{-1e9, -1e9};
  for (const Polyline& line : lines)
    for (const Point& p : line) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  const double extent = std::max(high.x - low.x, high.y - low.y), room = box_px - width_px;
  const double scale = extent > room ? room / extent : 1;
  const Point centre{(low.x + high.x) / 2, (low.y + high.y) / 2};
  transform(lines, [&](Point p) { return Point{scale * (p.x - centre.x), scale * (p.y - centre.y)}; });
}

// Ink of a round pen on the oversampled canvas, 0 to 1, softened over one of its pixels.
class Canvas {
 public:
  Canvas() : ink_(canvas * canvas, 0.0f) {}

  void stroke(const Polyline& line, double radius) {
    for (std::size_t k = 0; k + 1 < line.size(); ++k)
      segment(to_canvas(line[k]), to_canvas(line[k + 1]), radius);
  }
  Point centre_of_mass() const {
    double sum = 1e-12, x_sum = 0, y_sum = 0;
    for (int y = 0; y < canvas; ++y)
      for (int x = 0; x < canvas; ++x) {
        const double ink = at(x, y);
        sum += ink, x_sum += ink * (x + 0.5), y_sum += ink * (y + 0.5);
      }
    return {x_sum / sum, y_sum / sum};
  }
  // The mean over a block; blocks reach outside where the glyph lies near the edge.
  double block(int x0, int y0) const {
    double sum = 0;
    for (int y = std::max(0, y0); y < std::min(canvas, y0 + oversampling); ++y)
      for (int x = std::max(0, x0); x < std::min(canvas, x0 + oversampling); ++x) sum += at(x, y);
    return sum / (oversampling * oversampling);
  }

 private:
  static Point to_canvas(Point p) {
    return {oversampling * (p.x + canvas_px / 2.0), oversampling * (p.y + canvas_px / 2.0)};
  }
  float at(int x, int y) const { return ink_[static_cast<std::size_t>(y * canvas + x)]; }

  void segment(Point a, Point b, double radius) {
    const double dx = b.x - a.x, dy = b.y - a.y, scale = 1 / std::max(dx * dx + dy * dy, 1e-12);
    const auto first = [&](double v, double w) {
      return std::max(0, static_cast<int>(std::min(v, w) - radius - 1));
    };
    const auto last = [&](double v, double w) {
      return std::min(canvas - 1, static_cast<int>(std::max(v, w) + radius + 1));
    };
    for (int y = first(a.y, b.y); y <= last(a.y, b.y); ++y)
      for (int x = first(a.x, b.x); x <= last(a.x, b.x); ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = std::clamp((px * dx + py * dy) * scale, 0.0, 1.0);
        const double ux = px - t * dx, uy = py - t * dy;
        const double cover = std::clamp(radius + 0.5 - std::sqrt(ux * ux + uy * uy), 0.0, 1.0);
        float& ink = ink_[static_cast<std::size_t>(y * canvas + x)];
        ink = std::max(ink, static_cast<float>(cover));
      }
  }

  std::vector<float> ink_;
};

}  // namespace

Digit draw_digit(RandomStream& random) {
  Digit digit;
  digit.label = static_cast<int>(random.below(10));
  digit.rotation = random.uniform(-1, 1) * 15 * std::numbers::pi / 180;
  digit.shear = random.uniform(-0.2, 0.2);
  digit.scale = random.uniform(0.8, 1.2);
  digit.width_px = random.uniform(2, 4);
  std::vector<Polyline> lines = trace(random, glyphs()[static_cast<std::size_t>(digit.label)]);
  place(lines, digit);
  const ElasticField field(random);
  transform(lines, [&](Point p) {
    const Point d = field.displacement(p);
    return Point{p.x + d.x, p.y + d.y};
  });
  fit_box(lines, digit.width_px);
  Canvas ink;
  for (const Polyline& line : lines) ink.stroke(line, 0.5 * oversampling * digit.width_px);
  const Point centre = ink.centre_of_mass();
  const int left = static_cast<int>(std::lround(centre.x)) - digit_size * oversampling / 2;
  const int top = static_cast<int>(std::lround(centre.y)) - digit_size * oversampling / 2;
  for (int y = 0; y < digit_size; ++y)
    for (int x = 0; x < digit_size; ++x)
      digit.pixels[static_cast<std::size_t>(y * digit_size + x)] = static_cast<std::uint8_t>(
          std::lround(255 * ink.block(left + oversampling * x, top + oversampling * y)));
  return digit;
}

}  // namespace superstep::data
