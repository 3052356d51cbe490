#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

using Table = std::array<Color, 256>;
using Linear = std::array<double, 3>;

// Every 17th entry of viridis (S. van der Walt and N. Smith, 2015, CC0).
constexpr Color viridis_anchors[] = {{68, 1, 84},    {72, 26, 108},  {71, 47, 125},  {65, 68, 135},
                                     {57, 86, 140},  {49, 104, 142}, {42, 120, 142}, {35, 136, 142},
                                     {31, 152, 139}, {34, 168, 132}, {53, 183, 121}, {84, 197, 104},
                                     {122, 209, 81}, {165, 219, 54}, {210, 226, 27}, {253, 231, 37}};

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

Color viridis(int index) {
  const int anchor = std::min(index / 17, 14);
  const double part = (index - 17 * anchor) / 17.0;
  Color color;
  for (std::size_t c = 0; c < 3; ++c)
    color[c] = to_byte(std::lerp(viridis_anchors[anchor][c], viridis_anchors[anchor + 1][c], part) / 255);
  return color;
}

double srgb_from_linear(double value) {
  return value <= 0.0031308 ? 12.92 * value : 1.055 * std::pow(value, 1 / 2.4) - 0.055;
}

// OKLab to sRGB (B. Ottosson, "A perceptual color space for image processing", 2020).
Color from_oklab(double lightness, double a, double b) {
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  const Linear linear = {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
                         -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
                         -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
  return {to_byte(srgb_from_linear(linear[0])), to_byte(srgb_from_linear(linear[1])),
          to_byte(srgb_from_linear(linear[2]))};
}

// Once around the hues, -pi to pi; 0 is lightest (green) and +-pi darkest (purple), so that the picture reads
// in grey too. With this first hue every colour lies within sRGB.
Color phase(int index) {
  constexpr double pi = std::numbers::pi, chroma = 0.115, first_hue = pi * 150 / 180;
  const double angle = pi * (2 * index / 255.0 - 1), hue = angle + first_hue;
  return from_oklab(0.66 + 0.12 * std::cos(angle), chroma * std::cos(hue), chroma * std::sin(hue));
}

// The ends are as dark as each other, and told apart by most colour-blind readers.
Color difference(int index) {
  constexpr Color blue = {33, 92, 172}, white = {247, 247, 247}, red = {186, 40, 34};
  const double part = index / 127.5 - 1;
  Color color;
  for (std::size_t c = 0; c < 3; ++c)
    color[c] = to_byte(std::lerp(white[c], part < 0 ? blue[c] : red[c], std::abs(part)) / 255);
  return color;
}

Color gray(int index) {
  const auto level = static_cast<std::uint8_t>(index);
  return {level, level, level};
}

Table make_table(Color (*color)(int)) {
  Table table;
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = color(i);
  return table;
}

const Table& table_of(Colormap map) {
  static const Table tables[] = {make_table(gray), make_table(viridis), make_table(phase),
                                 make_table(difference)};
  return tables[static_cast<int>(map)];
}

ValueRange default_range(std::span<const float> values, Colormap map) {
  constexpr float pi = std::numbers::pi_v<float>;
  if (map == Colormap::phase) return {-pi, pi};
  const ValueRange range = finite_range(values);
  if (map != Colormap::difference) return range;
  const float reach = std::max(std::abs(range.low), std::abs(range.high));
  return {-reach, reach};
}

Color color_of(float value, ValueRange range, const Table& table) {
  if (range.low == range.high) return table[value < range.low ? 0 : value > range.high ? 255 : 127];
  const double part = (double{value} - range.low) / (double{range.high} - range.low);
  return table[static_cast<std::size_t>(std::lround(255 * std::clamp(part, 0.0, 1.0)))];
}

}  // namespace

ValueRange finite_range(std::span<const float> values) {
  ValueRange range{INFINITY, -INFINITY};
  for (float value : values)
    if (std::isfinite(value)) range = {std::min(range.low, value), std::max(range.high, value)};
  return range.low <= range.high ? range : ValueRange{0, 1};
}

Image colored(std::span<const float> values, int width, int height, Colormap map, std::optional<float> low,
              std::optional<float> high, Color missing) {
  if (width < 0 || height < 0 || values.size() != static_cast<std::size_t>(width) * height)
    throw Error(ErrorCode::invalid_argument, "a picture of " + std::to_string(width) + " x " +
                                                 std::to_string(height) + " pixels cannot have " +
                                                 std::to_string(values.size()) + " values");
  const ValueRange found = default_range(values, map);
  const ValueRange range{low.value_or(found.low), high.value_or(found.high)};
  const Table& table = table_of(map);
  Image image{width, height, {}};
  image.rgb.reserve(3 * values.size());
  for (float value : values) {
    const Color color = std::isnan(value) ? missing : color_of(value, range, table);
    image.rgb.insert(image.rgb.end(), color.begin(), color.end());
  }
  return image;
}

}  // namespace superstep::page
