#include "superstep/baseline/ptychography/epie_compare.h"

#include <cmath>

#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

using Complex = std::complex<double>;

// The comparison's pixels as products reconstructed * conj(true), 0 where they do not count.
std::vector<Complex> weighted_products(std::span<const std::complex<float>> a,
                                       std::span<const std::complex<float>> b,
                                       std::span<const float> weight) {
  std::vector<Complex> products;
  for (std::size_t i = 0; i < a.size(); ++i)
    products.push_back(weight[i] > 0 ? Complex(a[i]) * std::conj(Complex(b[i])) : Complex(0));
  return products;
}

// The mean phase step from a pixel to the one `stride` further on; `last` is the extent along that axis.
double phase_step(const std::vector<Complex>& z, std::size_t stride, std::size_t extent) {
  Complex sum = 0;
  for (std::size_t i = 0; i + stride < z.size(); ++i)
    if (i / stride % extent + 1 < extent) sum += z[i + stride] * std::conj(z[i]);
  return std::arg(sum);
}

void remove_ramp(std::vector<Complex>& z, double ramp_y, double ramp_x, std::size_t width) {
  for (std::size_t i = 0; i < z.size(); ++i)
    z[i] *=
        std::polar(1.0, -(ramp_y * static_cast<double>(i / width) + ramp_x * static_cast<double>(i % width)));
}

// One Newton step of the least-squares plane through the remaining phases: the slopes along both axes.
std::array<double, 2> remaining_slopes(const std::vector<Complex>& z, std::size_t width) {
  Complex sum = 0;
  for (const Complex& value : z) sum += value;
  double count = 0, mean_y = 0, mean_x = 0;
  for (std::size_t i = 0; i < z.size(); ++i)
    if (z[i] != 0.0) {
      ++count;
      mean_y += static_cast<double>(i / width);
      mean_x += static_cast<double>(i % width);
    }
  mean_y /= count;
  mean_x /= count;
  double yy = 0, xx = 0, xy = 0, y_phase = 0, x_phase = 0;
  for (std::size_t i = 0; i < z.size(); ++i)
    if (z[i] != 0.0) {
      const double y = static_cast<double>(i / width) - mean_y, x = static_cast<double>(i % width) - mean_x;
      const double phase = std::arg(z[i] * std::conj(sum));
      yy += y * y, xx += x * x, xy += x * y, y_phase += y * phase, x_phase += x * phase;
    }
  const double determinant = yy * xx - xy * xy;
  if (!(determinant > 0)) return {0, 0};
  return {(y_phase * xx - x_phase * xy) / determinant, (x_phase * yy - y_phase * xy) / determinant};
}

}  // namespace

ObjectComparison compare_objects(std::span<const std::complex<float>> reconstructed,
                                 std::span<const std::complex<float>> truth, std::span<const float> weight,
                                 int height, int width) {
  const auto rows = static_cast<std::size_t>(height), columns = static_cast<std::size_t>(width);
  auto z = weighted_products(reconstructed, truth, weight);
  ObjectComparison result;
  result.ramp_y = phase_step(z, columns, rows);
  result.ramp_x = phase_step(z, 1, columns);
  remove_ramp(z, result.ramp_y, result.ramp_x, columns);
  for (int refinement = 0; refinement < 3; ++refinement) {
    const auto [y, x] = remaining_slopes(z, columns);
    remove_ramp(z, y, x, columns);
    result.ramp_y += y;
    result.ramp_x += x;
  }
  Complex sum = 0;
  double moduli = 0, squares = 0;
  for (std::size_t i = 0; i < z.size(); ++i)
    if (weight[i] > 0) {
      sum += z[i];
      moduli += std::abs(z[i]);
      squares += std::norm(Complex(reconstructed[i]));
      ++result.pixels;
    }
  const double scale = squares > 0 ? moduli / squares : 0;
  double phase_squares = 0, amplitude_squares = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const auto y = static_cast<double>(i / columns), x = static_cast<double>(i % columns);
    const double turn = -(result.ramp_y * y + result.ramp_x * x + std::arg(sum));
    result.aligned.emplace_back(scale * Complex(reconstructed[i]) * std::polar(1.0, turn));
    if (!(weight[i] > 0)) continue;
    phase_squares += std::pow(std::arg(z[i] * std::conj(sum)), 2);
    amplitude_squares += std::pow(std::abs(result.aligned[i]) - std::abs(truth[i]), 2);
  }
  result.phase_rms = std::sqrt(phase_squares / result.pixels);
  result.amplitude_rms = std::sqrt(amplitude_squares / result.pixels);
  return result;
}

std::vector<float> scanned_area(const PtychoData& data, std::span<const std::complex<float>> probe) {
  const auto side = static_cast<std::size_t>(data.n), width = static_cast<std::size_t>(data.width);
  std::vector<double> dose(static_cast<std::size_t>(data.height) * width);
  const auto pixel = [&](data::Position at, std::size_t y, std::size_t x) {
    return (static_cast<std::size_t>(at.y) + y) * width + static_cast<std::size_t>(at.x) + x;
  };
  for (const data::Position at : data.positions)
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x) dose[pixel(at, y, x)] += data::squared(probe[y * side + x]);
  double at_points = 0;
  for (const data::Position at : data.positions) at_points += dose[pixel(at, side / 2, side / 2)];
  const double half = 0.5 * at_points / static_cast<double>(data.positions.size());
  std::vector<float> area;
  for (const double value : dose) area.push_back(value >= half ? 1.0f : 0.0f);
  return area;
}

}  // namespace superstep::baseline
