#include "superstep/physics/xray/ptycho_diffraction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "superstep/physics/fft.h"

namespace superstep::data {

template <class T>
void exit_wave(std::span<const std::complex<T>> probe, int n, std::span<const std::complex<T>> object,
               int object_width, Position at, std::span<std::complex<T>> wave) {
  const auto side = static_cast<std::size_t>(n);
  for (std::size_t y = 0; y < side; ++y) {
    const auto* from = &object[(static_cast<std::size_t>(at.y) + y) * static_cast<std::size_t>(object_width) +
                               static_cast<std::size_t>(at.x)];
    for (std::size_t x = 0; x < side; ++x) wave[y * side + x] = multiply(probe[y * side + x], from[x]);
  }
}

template <class T>
void far_field_intensity(std::span<std::complex<T>> wave, int n, std::span<T> intensity) {
  thread_fft<T>({n, n}).forward(wave);
  const auto side = static_cast<std::size_t>(n), half = side / 2;
  const T scale = T{1} / static_cast<T>(side * side);
  for (std::size_t y = 0; y < side; ++y) {
    T* row = &intensity[((y + half) % side) * side];
    for (std::size_t x = 0; x < half; ++x) {
      row[x + half] = squared(wave[y * side + x]) * scale;
      row[x] = squared(wave[y * side + half + x]) * scale;
    }
  }
}

#define SUPERSTEP_FORWARD_MODEL(T)                                                                         \
  template void exit_wave<T>(std::span<const std::complex<T>>, int, std::span<const std::complex<T>>, int, \
                             Position, std::span<std::complex<T>>);                                        \
  template void far_field_intensity<T>(std::span<std::complex<T>>, int, std::span<T>);
SUPERSTEP_FORWARD_MODEL(float)
SUPERSTEP_FORWARD_MODEL(double)
#undef SUPERSTEP_FORWARD_MODEL

Detector make_detector(RandomStream& random, int n, double dead_fraction, double threshold) {
  Detector detector{std::vector<std::uint8_t>(static_cast<std::size_t>(n) * n), threshold};
  for (std::uint8_t& dead : detector.dead) dead = random.uniform() < dead_fraction;
  return detector;
}

namespace {

// scale mean^power >= P(count >= threshold).
struct CountBound {
  explicit CountBound(double threshold)
      : power(static_cast<int>(std::clamp(std::ceil(threshold), 1.0, 8.0))),
        scale(1 / std::tgamma(power + 1.0)) {}
  int power;
  double scale;
};

// A Poisson count of mean below 10 by inversion; any value below `threshold` may come back as 0.
// P(count >= t) is at most mean^t / t!, so that a draw below 1 minus that is below t: most pixels of a
// diffraction pattern are nearly dark, and this spares them the exponential.
std::uint64_t small_count(RandomStream& random, double mean, const CountBound& bound) {
  const double u = random.uniform();
  double tail = bound.scale;
  for (int i = 0; i < bound.power; ++i) tail *= mean;
  if (u < 1 - tail) return 0;
  constexpr std::uint64_t largest = 200;  // far beyond what 53 bits can tell from certainty
  double probability = std::exp(-mean), below = probability;
  std::uint64_t count = 0;
  for (; u > below && count < largest; below += probability)
    probability *= mean / static_cast<double>(++count);
  return count;
}

}  // namespace

void count_photons(RandomStream& random, std::span<const float> intensity, const Detector& detector,
                   std::span<float> counts) {
  const CountBound bound(detector.threshold);
  for (std::size_t i = 0; i < intensity.size(); ++i) {
    const double mean = intensity[i];
    const auto count =
        static_cast<double>(mean < 10 ? small_count(random, mean, bound) : random.poisson(mean));
    const bool lost = count < detector.threshold || (!detector.dead.empty() && detector.dead[i]);
    counts[i] = lost ? 0.0f : static_cast<float>(count);
  }
}

}  // namespace superstep::data
