#include "superstep/data/ptycho_diffraction.h"

#include <cstddef>

#include "superstep/data/fft.h"

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

#define SUPERSTEP_FORWARD_MODEL(T)                                                                       \
  template void exit_wave<T>(std::span<const std::complex<T>>, int, std::span<const std::complex<T>>,    \
                             int, Position, std::span<std::complex<T>>);                                 \
  template void far_field_intensity<T>(std::span<std::complex<T>>, int, std::span<T>);
SUPERSTEP_FORWARD_MODEL(float)
SUPERSTEP_FORWARD_MODEL(double)
#undef SUPERSTEP_FORWARD_MODEL

Detector make_detector(RandomStream& random, int n, double dead_fraction, double threshold) {
  Detector detector{std::vector<std::uint8_t>(static_cast<std::size_t>(n) * n), threshold};
  for (std::uint8_t& dead : detector.dead) dead = random.uniform() < dead_fraction;
  return detector;
}

void count_photons(RandomStream& random, std::span<const float> intensity, const Detector& detector,
                   std::span<float> counts) {
  for (std::size_t i = 0; i < intensity.size(); ++i) {
    const auto count = static_cast<double>(random.poisson(intensity[i]));
    const bool lost = count < detector.threshold || (!detector.dead.empty() && detector.dead[i]);
    counts[i] = lost ? 0.0f : static_cast<float>(count);
  }
}

}  // namespace superstep::data
