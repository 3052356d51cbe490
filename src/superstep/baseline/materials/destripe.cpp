#include "superstep/baseline/materials/destripe.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "superstep/physics/random_field.h"

namespace superstep::baseline {
namespace {

// The orthogonal scaling filter with two vanishing moments; the wavelet is its mirror with signs.
const std::array<float, 4>& scaling_filter() {
  static const std::array<float, 4> taps = [] {
    const double r = std::sqrt(3.0), n = 4 * std::sqrt(2.0);
    return std::array<float, 4>{static_cast<float>((1 + r) / n), static_cast<float>((3 + r) / n),
                                static_cast<float>((3 - r) / n), static_cast<float>((1 - r) / n)};
  }();
  return taps;
}

struct Image {
  Image(std::size_t w, std::size_t h) : width(w), height(h), values(w * h, 0.0f) {}
  float& at(std::size_t x, std::size_t y) { return values[y * width + x]; }
  float at(std::size_t x, std::size_t y) const { return values[y * width + x]; }
  std::size_t width, height;
  std::vector<float> values;
};

// Element k of the wavelet filter.
float wavelet(std::size_t k) { return (k % 2 ? -1.0f : 1.0f) * scaling_filter()[3 - k]; }

// One level along x, periodic: low and high half.
void split_rows(const Image& image, Image& low, Image& high) {
  for (std::size_t y = 0; y < image.height; ++y)
    for (std::size_t x = 0; x < low.width; ++x) {
      float smooth = 0, detail = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        const float value = image.at((2 * x + k) % image.width, y);
        smooth += scaling_filter()[k] * value;
        detail += wavelet(k) * value;
      }
      low.at(x, y) = smooth;
      high.at(x, y) = detail;
    }
}

// The transpose of split_rows, which is its inverse.
void join_rows(const Image& low, const Image& high, Image& image) {
  image.values.assign(image.values.size(), 0.0f);
  for (std::size_t y = 0; y < image.height; ++y)
    for (std::size_t x = 0; x < low.width; ++x)
      for (std::size_t k = 0; k < 4; ++k)
        image.at((2 * x + k) % image.width, y) +=
            scaling_filter()[k] * low.at(x, y) + wavelet(k) * high.at(x, y);
}

Image transposed(const Image& image) {
  Image result(image.height, image.width);
  for (std::size_t y = 0; y < image.height; ++y)
    for (std::size_t x = 0; x < image.width; ++x) result.at(y, x) = image.at(x, y);
  return result;
}

void damp_slow_changes_along_y(Image& band, double damping) {
  Image slow = band;
  const double sigma = static_cast<double>(band.height) / (2 * std::numbers::pi * damping);
  data::blur_columns(slow.values, static_cast<int>(band.width), static_cast<int>(band.height),
                     data::gaussian_kernel(sigma), data::Border::periodic);
  for (std::size_t i = 0; i < band.values.size(); ++i) band.values[i] -= slow.values[i];
}

// One level and those below it, in place.
void process(Image& image, int levels, double damping) {
  if (levels == 0 || image.width % 2 || image.height % 2 || image.width < 8 || image.height < 8) return;
  const std::size_t w = image.width / 2, h = image.height / 2;
  Image left(w, image.height), right(w, image.height);
  split_rows(image, left, right);
  // Along y: rows of the transposed halves.
  Image smooth(h, w), horizontal(h, w), vertical(h, w), diagonal(h, w);
  split_rows(transposed(left), smooth, horizontal);
  split_rows(transposed(right), vertical, diagonal);
  Image next = transposed(smooth), stripes = transposed(vertical);
  process(next, levels - 1, damping);
  damp_slow_changes_along_y(stripes, damping);
  Image left_turned(image.height, w), right_turned(image.height, w);
  join_rows(transposed(next), horizontal, left_turned);
  join_rows(transposed(stripes), diagonal, right_turned);
  join_rows(transposed(left_turned), transposed(right_turned), image);
}

}  // namespace

std::vector<float> remove_vertical_stripes(std::span<const float> pixels, int width, int height, int levels,
                                           double damping) {
  Image image(static_cast<std::size_t>(width), static_cast<std::size_t>(height));
  image.values.assign(pixels.begin(), pixels.end());
  process(image, levels, damping);
  return image.values;
}

}  // namespace superstep::baseline
