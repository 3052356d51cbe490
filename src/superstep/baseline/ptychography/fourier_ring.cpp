#include "superstep/baseline/ptychography/fourier_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

using Field = std::vector<std::complex<float>>;

void require_pictures(std::span<const std::complex<float>> a, std::span<const std::complex<float>> b, int n) {
  const auto bad = [](std::string what) {
    throw Error(ErrorCode::invalid_argument, std::move(what), "Fourier ring correlation");
  };
  if (n < 4) bad(fmt::format("pictures of {} x {} pixels have no rings", n, n));
  const auto pixels = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  if (a.size() != pixels || b.size() != pixels)
    bad(fmt::format("{} and {} values for {} x {} pixels", a.size(), b.size(), n, n));
  for (std::size_t i = 0; i < pixels; ++i)
    for (const auto& value : {a[i], b[i]})
      if (!std::isfinite(value.real()) || !std::isfinite(value.imag()))
        bad(fmt::format("pixel ({}, {}) is not finite", i / static_cast<std::size_t>(n),
                        i % static_cast<std::size_t>(n)));
}

Field transformed(std::span<const std::complex<float>> picture, int n) {
  Field field(picture.begin(), picture.end());
  data::thread_fft<float>({n, n}).forward(field);
  return field;
}

// 0 at the outer end of the rim, 1 from its inner end on.
double taper(int place, int side) {
  const double rim = side / 8.0, depth = std::min(place, side - 1 - place) + 0.5;
  return depth >= rim ? 1 : 0.5 * (1 - std::cos(std::numbers::pi * depth / rim));
}

}  // namespace

RingCorrelation fourier_ring_correlation(std::span<const std::complex<float>> a,
                                         std::span<const std::complex<float>> b, int n) {
  require_pictures(a, b, n);
  const Field fa = transformed(a, n), fb = transformed(b, n);
  const auto rings = static_cast<std::size_t>(n / 2 + 1);
  std::vector<double> both(rings), own(rings), other(rings);
  RingCorrelation result{.n = n, .correlation = {}, .count = std::vector<double>(rings)};
  for (std::size_t i = 0; i < fa.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / n, column = static_cast<std::int64_t>(i) % n;
    const double steps = n * std::hypot(data::fft_frequency(row, n), data::fft_frequency(column, n));
    const auto ring = static_cast<std::size_t>(std::lround(steps));
    if (ring >= rings) continue;
    both[ring] += double{fa[i].real()} * fb[i].real() + double{fa[i].imag()} * fb[i].imag();
    own[ring] += data::squared(fa[i]);
    other[ring] += data::squared(fb[i]);
    ++result.count[ring];
  }
  for (std::size_t ring = 0; ring < rings; ++ring) {
    const double norms = std::sqrt(own[ring] * other[ring]);
    result.correlation.push_back(norms > 0 ? both[ring] / norms : 0);
  }
  return result;
}

double half_bit(double count) {
  const double root = std::sqrt(std::max(1.0, count / 2));
  return (0.2071 + 1.9102 / root) / (1.2071 + 0.9102 / root);
}

Square largest_square(std::span<const float> area, int height, int width) {
  if (area.size() != static_cast<std::size_t>(height) * static_cast<std::size_t>(width))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} values for {} x {} pixels", area.size(), height, width), "scanned area");
  Square best;
  // The side of the largest square whose lower right corner is a pixel of the row before, and of this one.
  std::vector<int> above(static_cast<std::size_t>(width)), sides(above.size());
  for (int y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < sides.size(); ++x) {
      const bool lit = area[static_cast<std::size_t>(y) * sides.size() + x] > 0;
      sides[x] = !lit ? 0 : x == 0 ? 1 : 1 + std::min({sides[x - 1], above[x], above[x - 1]});
      if (sides[x] > best.side) best = {y + 1 - sides[x], static_cast<int>(x) + 1 - sides[x], sides[x]};
    }
    std::swap(above, sides);
  }
  return best;
}

std::vector<std::complex<float>> tapered_phase(std::span<const std::complex<float>> object, int width,
                                               const Square& square) {
  const auto at = [&](int y, int x) {
    return object[static_cast<std::size_t>(square.top + y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(square.left + x)];
  };
  std::vector<std::complex<double>> turns;
  std::complex<double> sum = 0;
  for (int y = 0; y < square.side; ++y)
    for (int x = 0; x < square.side; ++x)
      sum += turns.emplace_back(std::polar(1.0, std::arg(std::complex<double>(at(y, x)))));
  const std::complex<double> mean = sum / std::max<double>(1, static_cast<double>(turns.size()));
  Field tapered;
  for (int y = 0; y < square.side; ++y)
    for (int x = 0; x < square.side; ++x)
      tapered.emplace_back((turns[static_cast<std::size_t>(y * square.side + x)] - mean) *
                           (taper(y, square.side) * taper(x, square.side)));
  return tapered;
}

}  // namespace superstep::baseline
