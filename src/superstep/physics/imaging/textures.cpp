#include "superstep/physics/imaging/textures.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/physics/random_field.h"

namespace superstep::data {
namespace {

using Texture = std::vector<float>;

std::size_t square(int size) { return static_cast<std::size_t>(size) * static_cast<std::size_t>(size); }

Texture waves(RandomStream& random, int size, double wavelength) {
  const double direction = random.uniform(0, std::numbers::pi),
               phase = random.uniform(0, 2 * std::numbers::pi);
  const double k = 2 * std::numbers::pi / wavelength, bend = random.uniform(0, 0.6);
  const double bend_phase = random.uniform(0, 2 * std::numbers::pi);
  const double c = std::cos(direction), s = std::sin(direction);
  Texture texture;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const double along = c * x + s * y, across = c * y - s * x;
      texture.push_back(
          static_cast<float>(std::cos(k * along + phase + bend * std::sin(0.3 * k * across + bend_phase))));
    }
  return texture;
}

double smooth_step(double t) { return t * t * t * (t * (6 * t - 15) + 10); }

// One octave of gradient noise, about [-0.7, 0.7].
void add_gradient_noise(RandomStream& random, int size, double cell, double weight, Texture& texture) {
  const int nodes = static_cast<int>(size / cell) + 3;
  std::vector<double> gx, gy;
  for (std::size_t i = 0; i < square(nodes); ++i) {
    const double angle = random.uniform(0, 2 * std::numbers::pi);
    gx.push_back(std::cos(angle)), gy.push_back(std::sin(angle));
  }
  const double x_offset = random.uniform(), y_offset = random.uniform();
  const auto corner = [&](int i, int j, double u, double v) {
    const auto at = static_cast<std::size_t>(j * nodes + i);
    return gx[at] * u + gy[at] * v;
  };
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const double px = x / cell + x_offset, py = y / cell + y_offset;
      const int i = static_cast<int>(px), j = static_cast<int>(py);
      const double u = px - i, v = py - j, su = smooth_step(u), sv = smooth_step(v);
      const double top = std::lerp(corner(i, j, u, v), corner(i + 1, j, u - 1, v), su);
      const double bottom = std::lerp(corner(i, j + 1, u, v - 1), corner(i + 1, j + 1, u - 1, v - 1), su);
      texture[static_cast<std::size_t>(y * size + x)] +=
          static_cast<float>(weight * std::lerp(top, bottom, sv));
    }
}

Texture clouds(RandomStream& random, int size, double wavelength) {
  Texture texture(square(size), 0.0f);
  add_gradient_noise(random, size, 0.7 * wavelength, 1.6, texture);
  add_gradient_noise(random, size, 0.35 * wavelength, 0.8, texture);
  return texture;
}

Texture cells(RandomStream& random, int size, double wavelength) {
  const int columns = static_cast<int>(size / wavelength) + 4;
  std::vector<double> px, py;
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < columns; ++i) {
      px.push_back(wavelength * (i - 1 + random.uniform(0.1, 0.9)));
      py.push_back(wavelength * (j - 1 + random.uniform(0.1, 0.9)));
    }
  Texture texture;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const int ci = static_cast<int>(x / wavelength) + 1, cj = static_cast<int>(y / wavelength) + 1;
      double nearest = 1e30, second = 1e30;
      for (int j = cj - 1; j <= cj + 1; ++j)
        for (int i = ci - 1; i <= ci + 1; ++i) {
          const auto at = static_cast<std::size_t>(j * columns + i);
          const double distance = std::hypot(px[at] - x, py[at] - y);
          second = std::min(second, std::max(distance, nearest));
          nearest = std::min(nearest, distance);
        }
      texture.push_back(static_cast<float>(4 * (second - nearest) / wavelength - 1));
    }
  return texture;
}

// The difference of two Gaussians, the second twice as wide, passes waves of 6.54 times the narrower sigma
// best.
Texture spots(RandomStream& random, int size, double wavelength) {
  const std::vector<float> activator = gaussian_kernel(wavelength / 6.54);
  const std::vector<float> inhibitor = gaussian_kernel(2 * wavelength / 6.54);
  const float bias = static_cast<float>(random.uniform(-0.25, 0.25));  // from spots to holes
  Texture texture(square(size));
  for (float& value : texture) value = static_cast<float>(random.uniform(-1, 1));
  for (int iteration = 0; iteration < 6; ++iteration) {
    Texture far = texture;
    blur(texture, size, size, activator, Border::periodic);
    blur(far, size, size, inhibitor, Border::periodic);
    for (std::size_t i = 0; i < texture.size(); ++i) texture[i] = std::tanh(6 * (texture[i] - far[i]) + bias);
  }
  return texture;
}

}  // namespace

std::vector<float> draw_texture(RandomStream& random, TextureFamily family, int size, double wavelength_px) {
  Texture texture;
  switch (family) {
    case TextureFamily::waves: texture = waves(random, size, wavelength_px); break;
    case TextureFamily::clouds: texture = clouds(random, size, wavelength_px); break;
    case TextureFamily::cells: texture = cells(random, size, wavelength_px); break;
    case TextureFamily::spots: texture = spots(random, size, wavelength_px); break;
  }
  for (float& value : texture) value = std::clamp(value, -1.0f, 1.0f);
  return texture;
}

}  // namespace superstep::data
