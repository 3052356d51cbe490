#include "superstep/physics/imaging/cifar_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;
using Color = std::array<double, 3>;

// Hue in turns, saturation, value (A. R. Smith, SIGGRAPH 1978).
Color from_hsv(double hue, double saturation, double value) {
  Color color;
  for (int k = 0; k < 3; ++k) {
    const double sector = std::fmod(5.0 - 2 * k + 6 * (hue - std::floor(hue)), 6.0);
    const double ramp = std::clamp(std::min(sector, 4 - sector), 0.0, 1.0);
    color[static_cast<std::size_t>(k)] = value * (1 - saturation * ramp);
  }
  return color;
}

Color mix(const Color& a, const Color& b, double t) {
  return {std::lerp(a[0], b[0], t), std::lerp(a[1], b[1], t), std::lerp(a[2], b[2], t)};
}

// Signed distance to the outline in units of the radius, negative inside, about exact near the outline.
double outline(ShapeFamily shape, double u, double v) {
  const double a = std::abs(u), b = std::abs(v), r = std::hypot(u, v);
  switch (shape) {
    case ShapeFamily::disc: return r - 0.9;
    case ShapeFamily::square: return std::max(a, b) - 0.78;
    case ShapeFamily::triangle: return std::max(0.866 * a + 0.5 * v, -v) - 0.55;
    case ShapeFamily::ring: return std::abs(r - 0.72) - 0.28;
    case ShapeFamily::cross: break;
  }
  return std::max(std::max(a, b) - 1, std::min(a, b) - 0.34);
}

struct Colors {
  Color dark, light, ground_a, ground_b;
};

// Two tones of the palette for the shape, and a ground of any hue between them in brightness.
Colors draw_colors(RandomStream& random, int palette, double difficulty) {
  const double hue = static_cast<double>(palette) / palettes + random.normal() * (0.02 + 0.02 * difficulty);
  const double saturation = random.uniform(0.45, 0.9), contrast = 0.55 - 0.2 * difficulty;
  const double middle = random.uniform(0.4, 0.6);
  Colors colors;
  colors.dark = from_hsv(hue, saturation, middle - contrast / 2);
  colors.light = from_hsv(hue + random.normal() * 0.03, saturation * 0.8, middle + contrast / 2);
  if (random.uniform() < 0.5) std::swap(colors.dark, colors.light);
  const double ground_hue = random.uniform(), ground_value = random.uniform(0.2, 0.8);
  colors.ground_a = from_hsv(ground_hue, random.uniform(0, 0.5), ground_value);
  colors.ground_b =
      from_hsv(ground_hue + 0.1, random.uniform(0, 0.5), ground_value + random.uniform(-0.2, 0.2));
  return colors;
}

struct Rectangle {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  Color color{};
  bool contains(double x, double y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

Rectangle draw_occluder(RandomStream& random, double difficulty) {
  const double area = random.uniform(0, 0.25 * difficulty), aspect = random.uniform(0.5, 2.0);
  const double width = std::sqrt(area * aspect), height = std::sqrt(area / aspect);
  const double x = random.uniform(0, 1 - width), y = random.uniform(0, 1 - height);
  return {x, y, x + width, y + height, from_hsv(random.uniform(), 0.5, random.uniform(0.2, 0.8))};
}

// Light falling from one side, as a factor.
class Light {
 public:
  Light(RandomStream& random, double difficulty)
      : mean_(random.uniform(1 - 0.35 * difficulty, 1 + 0.35 * difficulty)),
        slope_(random.uniform(0, 0.5 * difficulty)) {
    const double angle = random.uniform(0, 2 * pi);
    x_ = std::cos(angle), y_ = std::sin(angle);
  }
  double at(double x, double y) const { return mean_ * (1 + slope_ * (x_ * (x - 0.5) + y_ * (y - 0.5))); }

 private:
  double mean_, slope_, x_ = 0, y_ = 0;
};

void draw_pose(RandomStream& random, double difficulty, ClassImage& image) {
  image.radius = random.uniform(0.34, 0.46);
  const double shift = (0.05 + 0.1 * difficulty);
  image.x = 0.5 + random.uniform(-shift, shift);
  image.y = 0.5 + random.uniform(-shift, shift);
  image.angle = random.uniform(0, 2 * pi);
  image.wavelength = random.uniform(0.15, 0.21);
  image.noise = random.uniform(0.01, 0.01 + 0.09 * difficulty);
}

}  // namespace

ClassTraits traits_of_class(int label, int classes) {
  return {static_cast<TextureFamily>(label % texture_families),
          static_cast<ShapeFamily>(label % shape_families),
          classes > texture_families * shape_families ? label / (texture_families * shape_families) % palettes
                                                      : -1};
}

ClassImage draw_class_image(RandomStream& random, int size, int classes, double difficulty) {
  ClassImage image;
  image.label = static_cast<int>(random.below(static_cast<std::uint64_t>(classes)));
  const ClassTraits traits = traits_of_class(image.label, classes);
  image.palette = traits.palette >= 0 ? traits.palette : static_cast<int>(random.below(palettes));
  draw_pose(random, difficulty, image);
  const Colors colors = draw_colors(random, image.palette, difficulty);
  const Light light(random, difficulty);
  const Rectangle occluder = draw_occluder(random, difficulty);
  image.occluded = (occluder.x1 - occluder.x0) * (occluder.y1 - occluder.y0);
  const std::vector<float> texture = draw_texture(random, traits.texture, size, image.wavelength * size);

  const double c = std::cos(image.angle), s = std::sin(image.angle), soft = 0.7 / (size * image.radius);
  const std::size_t plane = texture.size();
  image.pixels.resize(3 * plane);
  for (std::size_t i = 0; i < plane; ++i) {
    const double x = (static_cast<double>(i % static_cast<std::size_t>(size)) + 0.5) / size;
    const double y = (static_cast<double>(i / static_cast<std::size_t>(size)) + 0.5) / size;
    const double dx = (x - image.x) / image.radius, dy = (y - image.y) / image.radius;
    const double inside =
        std::clamp(0.5 - outline(traits.shape, c * dx + s * dy, c * dy - s * dx) / soft / 2, 0.0, 1.0);
    Color color = mix(mix(colors.ground_a, colors.ground_b, x),
                      mix(colors.dark, colors.light, 0.5 + 0.5 * texture[i]), inside);
    if (occluder.contains(x, y)) color = occluder.color;
    for (std::size_t k = 0; k < 3; ++k) {
      const double value = color[k] * light.at(x, y) + image.noise * random.normal();
      image.pixels[k * plane + i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
    }
  }
  return image;
}

}  // namespace superstep::data
