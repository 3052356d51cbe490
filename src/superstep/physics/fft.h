// Discrete Fourier transforms of dense, row-major arrays of any rank, on KissFFT.
//
// Forward is F[k] = sum_x f[x] exp(-2 pi i k x / n), inverse has the other sign; neither is scaled, so that
// inverse(forward(f)) is f times the number of elements.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/shape.h"

namespace superstep::data {

// A plan for one shape, with its twiddle factors and scratch memory: make it once, use it often. One
// thread at a time. T is float or double. Extents made of 2, 3 and 5 are fast.
template <class T>
class Fft {
 public:
  explicit Fft(const Shape& shape);  // throws Error (invalid_argument) when an extent is 0
  ~Fft();
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;

  const Shape& shape() const { return shape_; }
  // In place; `values` has shape().element_count() elements, else Error (invalid_argument).
  void forward(std::span<std::complex<T>> values);
  void inverse(std::span<std::complex<T>> values);

 private:
  struct Plan;
  void require_size(std::size_t count) const;

  Shape shape_;
  std::unique_ptr<Plan> plan_;
};

// The calling thread's own plan for `shape`, made on first use and kept.
template <class T>
Fft<T>& thread_fft(const Shape& shape);

// Floating-point operations of one complex transform, by the usual count 5 n log2(n).
double fft_flops(const Shape& shape);

// Moves element 0 of every axis to position extent / 2 (so that frequency zero lies in the centre).
// `in` and `out` must not overlap.
template <class V>
void fft_shift(std::span<const V> in, const Shape& shape, std::span<V> out);

// For every element of `shape`, row-major, where fft_shift moves it to.
std::vector<std::size_t> fft_shift_targets(const Shape& shape);

template <class V>
void fft_shift(std::span<const V> in, const Shape& shape, std::span<V> out) {
  const std::vector<std::size_t> targets = fft_shift_targets(shape);
  for (std::size_t i = 0; i < targets.size(); ++i) out[targets[i]] = in[i];
}

// a b and conj(a) b, without the search for infinities that std::complex makes and that keeps loops scalar.
template <class T>
inline std::complex<T> multiply(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class T>
inline std::complex<T> multiply_conjugate(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}
// |a|^2; std::norm takes a square root in some libraries.
template <class T>
inline T squared(std::complex<T> a) {
  return a.real() * a.real() + a.imag() * a.imag();
}

// The frequency of bin `k` of `n` in cycles a sample: k / n in [-1/2, 1/2).
constexpr double fft_frequency(std::int64_t k, std::int64_t n) {
  return static_cast<double>(2 * k < n ? k : k - n) / static_cast<double>(n);
}

}  // namespace superstep::data
