#include "superstep/physics/xray/ptycho_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/physics/fft.h"

namespace superstep::data {
namespace {

// A disc as large as the pupil covers a pixel of the frequency plane with a soft edge of one pixel.
double soft_disc(double radius, double edge) { return std::clamp(edge - radius + 0.5, 0.0, 1.0); }

// The focus of a pupil of `radius` frequency pixels, on an m x m grid, centred.
ComplexField focus_of_pupil(int m, double radius, const ZonePlate& settings) {
  ComplexField pupil(static_cast<std::size_t>(m) * m);
  for (int y = 0; y < m; ++y)
    for (int x = 0; x < m; ++x) {
      const double r = m * std::hypot(fft_frequency(y, m), fft_frequency(x, m)), relative = r / radius;
      const double open = soft_disc(r, radius) - soft_disc(r, settings.central_stop * radius);
      const double phase = 2 * std::numbers::pi * settings.defocus_waves * relative * relative;
      pupil[static_cast<std::size_t>(y) * m + x] = std::polar(std::max(0.0, open), phase);
    }
  thread_fft<float>({m, m}).inverse(pupil);
  ComplexField focus(pupil.size());
  fft_shift<std::complex<float>>(pupil, {m, m}, focus);
  return focus;
}

ComplexField central_part(const ComplexField& field, int m, int n) {
  ComplexField part;
  const int first = m / 2 - n / 2;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x)
      part.push_back(field[static_cast<std::size_t>(first + y) * m + static_cast<std::size_t>(first + x)]);
  return part;
}

void normalize(ComplexField& field) { scale(field, 1 / std::sqrt(total_intensity(field))); }

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::invalid_argument, what, "probe");
}

}  // namespace

double total_intensity(std::span<const std::complex<float>> field) {
  double sum = 0;
  for (const auto& value : field)
    sum += double{value.real()} * value.real() + double{value.imag()} * value.imag();
  return sum;
}

void scale(std::span<std::complex<float>> field, double factor) {
  for (auto& value : field) value *= static_cast<float>(factor);
}

double full_width_at_half_maximum(std::span<const std::complex<float>> probe) {
  float peak = 0;
  for (const auto& value : probe) peak = std::max(peak, std::norm(value));
  const auto area = std::count_if(probe.begin(), probe.end(),
                                  [&](const auto& value) { return std::norm(value) >= peak / 2; });
  return 2 * std::sqrt(static_cast<double>(area) / std::numbers::pi);
}

ComplexField zone_plate_probe(int n, const ZonePlate& settings) {
  require(n >= 8, "a grid of at least 8 x 8 pixels is needed");
  require(settings.fwhm > 1 && settings.fwhm < n, "the width must lie between 1 px and the grid");
  require(settings.central_stop >= 0 && settings.central_stop <= 0.9, "the central stop must be in [0, 0.9]");
  // With the path difference given at the pupil's edge, the spot's shape does not depend on the pupil's
  // radius and its width goes as 1 / radius: measure a wide spot once, then scale.
  constexpr int trial_grid = 256;
  constexpr double trial_radius = 8;
  const double trial_width = full_width_at_half_maximum(focus_of_pupil(trial_grid, trial_radius, settings)) *
                             trial_radius / trial_grid;
  // Four times the window, so that the spot's outer rings leave it instead of folding back.
  const int m = 4 * n;
  ComplexField probe = central_part(focus_of_pupil(m, trial_width * m / settings.fwhm, settings), m, n);
  normalize(probe);
  return probe;
}

ComplexField gaussian_probe(int n, double fwhm) {
  require(n >= 2 && fwhm > 0, "a Gaussian probe needs a grid and a width above 0");
  const double inverse = 2 * std::numbers::ln2 / (fwhm * fwhm);  // of the amplitude: half the intensity's
  ComplexField probe;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      const double dy = y - n / 2, dx = x - n / 2;
      probe.emplace_back(static_cast<float>(std::exp(-inverse * (dy * dy + dx * dx))));
    }
  normalize(probe);
  return probe;
}

}  // namespace superstep::data
