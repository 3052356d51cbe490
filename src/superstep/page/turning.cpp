// Surfaces as pictures: triangles from the back to the front, lit from the eye's upper left.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/page/isosurface.h"

namespace superstep::page {
namespace {

constexpr int fine = 2;  // pixels drawn for each that is shown, along a side: smooth edges
constexpr std::array<float, 3> ground{38, 43, 49};
constexpr float least_light = 0.4f;  // of a face that looks away from the light

struct Corner {
  float x, y, depth;           // pixels to the right and down; towards the eye
  std::array<float, 3> color;  // lit, 0 to 255
};

// A canvas of `side` x `side` pixels with the depth of what was drawn.
class Canvas {
 public:
  explicit Canvas(int side)
      : side_(side),
        depth_(static_cast<std::size_t>(side) * static_cast<std::size_t>(side),
               -std::numeric_limits<float>::infinity()),
        color_(depth_.size(), ground) {}

  void draw(const Corner& a, const Corner& b, const Corner& c) {
    const float twice = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
    if (twice == 0) return;
    const auto first = [](float p, float q, float r) {
      return std::max(0, static_cast<int>(std::floor(std::min({p, q, r}))));
    };
    const auto last = [&](float p, float q, float r) {
      return std::min(side_ - 1, static_cast<int>(std::ceil(std::max({p, q, r}))));
    };
    for (int y = first(a.y, b.y, c.y); y <= last(a.y, b.y, c.y); ++y)
      for (int x = first(a.x, b.x, c.x); x <= last(a.x, b.x, c.x); ++x) {
        const float px = static_cast<float>(x) + 0.5f - a.x, py = static_cast<float>(y) + 0.5f - a.y;
        const float v = (px * (c.y - a.y) - (c.x - a.x) * py) / twice;
        const float w = ((b.x - a.x) * py - px * (b.y - a.y)) / twice;
        if (v >= 0 && w >= 0 && v + w <= 1) put(x, y, 1 - v - w, v, w, a, b, c);
      }
  }

  // The mean of `fine` x `fine` pixels.
  std::array<float, 3> shown(int x, int y) const {
    std::array<float, 3> sum{};
    for (int dy = 0; dy < fine; ++dy)
      for (int dx = 0; dx < fine; ++dx)
        for (std::size_t i = 0; i < 3; ++i) sum[i] += color_[place(fine * x + dx, fine * y + dy)][i];
    for (float& part : sum) part /= fine * fine;
    return sum;
  }

 private:
  std::size_t place(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(side_) + static_cast<std::size_t>(x);
  }
  void put(int x, int y, float u, float v, float w, const Corner& a, const Corner& b, const Corner& c) {
    const std::size_t at = place(x, y);
    const float depth = u * a.depth + v * b.depth + w * c.depth;
    if (depth <= depth_[at]) return;
    depth_[at] = depth;
    for (std::size_t i = 0; i < 3; ++i) color_[at][i] = u * a.color[i] + v * b.color[i] + w * c.color[i];
  }

  int side_;
  std::vector<float> depth_;
  std::vector<std::array<float, 3>> color_;
};

// (right, up, towards the eye) after a turn about z and the tilt of the eye.
std::array<double, 3> seen(const std::array<double, 3>& v, double turn, double tilt) {
  const double x = std::cos(turn) * v[0] - std::sin(turn) * v[1],
               y = std::sin(turn) * v[0] + std::cos(turn) * v[1];
  return {x, std::cos(tilt) * v[2] + std::sin(tilt) * y, std::sin(tilt) * v[2] - std::cos(tilt) * y};
}

float light_on(const std::array<double, 3>& normal) {
  constexpr std::array<double, 3> light{-0.4, 0.5, 0.7681};  // of length 1
  const double facing = normal[0] * light[0] + normal[1] * light[1] + normal[2] * light[2];
  return least_light + (1 - least_light) * static_cast<float>(std::max(0.0, facing));
}

void draw_frame(const Mesh& mesh, const Image& colors, const Turning& how, int frame, Image& strip) {
  const double turn = 2 * std::numbers::pi * frame / how.frames;
  const float middle = 0.5f * static_cast<float>(fine * how.pixels),
              zoom = middle / static_cast<float>(how.reach);
  std::vector<Corner> corners;
  for (std::size_t p = 0; p < mesh.points.size(); ++p) {
    const auto& [x, y, z] = mesh.points[p];
    const auto place = seen({double{x} - how.centre[0], double{y} - how.centre[1], double{z} - how.centre[2]},
                            turn, how.tilt);
    const auto& [nx, ny, nz] = mesh.normals[p];
    const float light = light_on(seen({nx, ny, nz}, turn, how.tilt));
    corners.push_back(
        {middle + zoom * static_cast<float>(place[0]),
         middle - zoom * static_cast<float>(place[1]),
         static_cast<float>(place[2]),
         {light * colors.rgb[3 * p], light * colors.rgb[3 * p + 1], light * colors.rgb[3 * p + 2]}});
  }
  Canvas canvas(fine * how.pixels);
  for (const auto& [a, b, c] : mesh.triangles) canvas.draw(corners[a], corners[b], corners[c]);
  for (int y = 0; y < how.pixels; ++y)
    for (int x = 0; x < how.pixels; ++x) {
      const auto color = canvas.shown(x, y);
      const auto at = 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(strip.width) +
                           static_cast<std::size_t>(frame * how.pixels + x));
      for (std::size_t i = 0; i < 3; ++i)
        strip.rgb[at + i] = static_cast<std::uint8_t>(std::lround(color[i]));
    }
}

}  // namespace

Image turning(const Mesh& mesh, std::span<const float> values, const Turning& how) {
  if (values.size() != mesh.points.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} values for {} points", values.size(), mesh.points.size()), "surface");
  if (how.frames < 1 || how.pixels < 1 || how.frames > 1000 || how.pixels > 2000 || !(how.reach > 0))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} pictures of {} pixels that reach {} voxels", how.frames, how.pixels, how.reach),
        "surface");
  const Image colors = colored(values, static_cast<int>(values.size()), 1, how.map,
                               -std::numbers::pi_v<float>, std::numbers::pi_v<float>);
  Image strip{how.frames * how.pixels, how.pixels, {}};
  strip.rgb.resize(3 * static_cast<std::size_t>(strip.width) * static_cast<std::size_t>(strip.height));
  for (int frame = 0; frame < how.frames; ++frame) draw_frame(mesh, colors, how, frame, strip);
  return strip;
}

}  // namespace superstep::page
