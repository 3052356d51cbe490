#include "superstep/target/cpu/kernels/fourier/fourier_plan.h"

#include <array>
#include <cmath>
#include <complex>
#include <numbers>

namespace superstep::kernels {

namespace {

using Complex = std::complex<double>;

// Eights first: a stage of eight does the work of three of two with one walk over memory.
constexpr std::array radices = {8, 4, 2, 3, 5, 7, 11, 13};

// e^(-2 pi i k / n), from the eighth of the circle in which it is exact to the last place.
Complex root(std::int64_t k, std::int64_t n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

void append(std::vector<float>& list, Complex value) {
  list.push_back(static_cast<float>(value.real()));
  list.push_back(static_cast<float>(value.imag()));
}

FourierStage stage_of(int radix, std::int64_t length, std::int64_t run) {
  FourierStage stage{radix, length / radix, run, {}};
  if (stage.blocks == 1) return stage;
  for (std::int64_t p = 0; p < stage.blocks; ++p)
    for (int j = 1; j < radix; ++j) append(stage.factors, root(j * p, length));
  return stage;
}

// A transform in double, for what is computed once.
std::vector<Complex> transformed(const std::vector<Complex>& x) {
  std::vector<Complex> from = x, to(x.size());
  for (const FourierStage& stage : fourier_stages(static_cast<std::int64_t>(x.size()))) {
    const std::int64_t r = stage.radix;
    for (std::int64_t p = 0; p < stage.blocks; ++p)
      for (std::int64_t q = 0; q < stage.run; ++q)
        for (std::int64_t j = 0; j < r; ++j) {
          Complex sum = 0;
          for (std::int64_t k = 0; k < r; ++k)
            sum += from[static_cast<std::size_t>(q + stage.run * (p + stage.blocks * k))] * root(j * k, r);
          to[static_cast<std::size_t>(q + stage.run * (r * p + j))] = sum * root(j * p, r * stage.blocks);
        }
    std::swap(from, to);
  }
  return from;
}

// The smallest length of twos, threes and fives that holds a convolution of n with itself.
std::int64_t padded_length(std::int64_t n) {
  std::int64_t best = 1;
  while (best < 2 * n - 1) best *= 2;
  for (std::int64_t fives = 1; fives < best; fives *= 5)
    for (std::int64_t threes = fives; threes < best; threes *= 3)
      for (std::int64_t length = threes; length < best; length *= 2)
        if (length >= 2 * n - 1) best = length;
  return best;
}

}  // namespace

bool has_stages(std::int64_t n) {
  for (const int radix : radices)
    while (n % radix == 0) n /= radix;
  return n == 1;
}

std::vector<FourierStage> fourier_stages(std::int64_t n) {
  std::vector<FourierStage> stages;
  for (std::int64_t run = 1; n > 1;) {
    for (const int radix : radices) {
      if (n % radix != 0) continue;
      if (radix == 8 && n == 16) continue;  // two of four instead of eight and two
      stages.push_back(stage_of(radix, n, run));
      run *= radix;
      n /= radix;
      break;
    }
  }
  return stages;
}

Chirp chirp_of(std::int64_t n) {
  if (has_stages(n)) return {};
  Chirp result{padded_length(n), {}, {}};
  std::vector<Complex> mirrored(static_cast<std::size_t>(result.padded));
  for (std::int64_t k = 0; k < n; ++k) {
    const Complex value = root(k * k % (2 * n), 2 * n);
    append(result.chirp, value);
    mirrored[static_cast<std::size_t>(k)] = std::conj(value);
    if (k > 0) mirrored[static_cast<std::size_t>(result.padded - k)] = std::conj(value);
  }
  for (const Complex value : transformed(mirrored))
    append(result.spectrum, value / static_cast<double>(result.padded));
  return result;
}

FourierPlan::FourierPlan(std::int64_t length)
    : n(length), chirp(chirp_of(length)), stages(fourier_stages(rows())) {}

}  // namespace superstep::kernels
