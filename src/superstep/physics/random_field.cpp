#include "superstep/physics/random_field.h"

#include <algorithm>
#include <cmath>

namespace superstep::data {
namespace {

int wrap(int i, int n, Border border) {
  if (border == Border::clamp) return std::clamp(i, 0, n - 1);
  return ((i % n) + n) % n;
}

void blur_row(float* row, int width, std::span<const float> kernel, Border border,
              std::vector<float>& padded) {
  const int taps = static_cast<int>(kernel.size()), reach = taps / 2;
  padded.resize(static_cast<std::size_t>(width + 2 * reach));
  for (int i = 0; i < width + 2 * reach; ++i)
    padded[static_cast<std::size_t>(i)] = row[wrap(i - reach, width, border)];
  std::fill_n(row, width, 0.0f);
  for (int t = 0; t < taps; ++t) {
    const float weight = kernel[static_cast<std::size_t>(t)];
    const float* from = padded.data() + t;
    for (int x = 0; x < width; ++x) row[x] += weight * from[x];
  }
}

}  // namespace

std::vector<float> gaussian_kernel(double sigma_px) {
  const int reach = static_cast<int>(std::ceil(3.5 * sigma_px));
  std::vector<double> taps;
  double sum = 0;
  for (int i = -reach; i <= reach; ++i) {
    taps.push_back(reach ? std::exp(-0.5 * i * i / (sigma_px * sigma_px)) : 1.0);
    sum += taps.back();
  }
  std::vector<float> kernel;
  for (double tap : taps) kernel.push_back(static_cast<float>(tap / sum));
  return kernel;
}

void blur_rows(std::span<float> image, int width, int height, std::span<const float> kernel, Border border) {
  std::vector<float> padded;
  for (int y = 0; y < height; ++y)
    blur_row(image.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width), width, kernel,
             border, padded);
}

void blur_columns(std::span<float> image, int width, int height, std::span<const float> kernel,
                  Border border) {
  const int taps = static_cast<int>(kernel.size()), reach = taps / 2;
  const auto w = static_cast<std::size_t>(width);
  std::vector<float> blurred(image.size(), 0.0f);
  for (int y = 0; y < height; ++y) {
    float* to = blurred.data() + static_cast<std::size_t>(y) * w;
    for (int t = 0; t < taps; ++t) {
      const float weight = kernel[static_cast<std::size_t>(t)];
      const float* from = image.data() + static_cast<std::size_t>(wrap(y + t - reach, height, border)) * w;
      for (std::size_t x = 0; x < w; ++x) to[x] += weight * from[x];
    }
  }
  std::copy(blurred.begin(), blurred.end(), image.begin());
}

void blur(std::span<float> image, int width, int height, std::span<const float> kernel, Border border) {
  blur_rows(image, width, height, kernel, border);
  blur_columns(image, width, height, kernel, border);
}

std::vector<float> gaussian_field(RandomStream& random, int width, int height, double sigma_px) {
  std::vector<float> field(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (float& value : field) value = static_cast<float>(random.normal());
  std::vector<float> kernel = gaussian_kernel(sigma_px);
  double power = 0;  // the variance that one pass leaves of white noise
  for (float tap : kernel) power += static_cast<double>(tap) * tap;
  for (float& tap : kernel) tap = static_cast<float>(tap / std::sqrt(power));
  if (width > 1) blur_rows(field, width, height, kernel, Border::periodic);
  if (height > 1) blur_columns(field, width, height, kernel, Border::periodic);
  return field;
}

}  // namespace superstep::data
