#include "superstep/physics/fft.h"

#include <fmt/format.h>
#include <kissfft/kiss_fftnd.h>

#include <cmath>
#include <kissfft/kissfft.hh>
#include <map>

#include "superstep/base/error.h"

namespace superstep::data {

// Single precision: the compiled library, which is the faster of the two interfaces.
template <>
struct Fft<float>::Plan {
  explicit Plan(const Shape& shape) {
    std::vector<int> extents;
    for (const std::int64_t extent : shape) extents.push_back(static_cast<int>(extent));
    const int rank = static_cast<int>(extents.size());
    forward = kiss_fftnd_alloc(extents.data(), rank, 0, nullptr, nullptr);
    inverse = kiss_fftnd_alloc(extents.data(), rank, 1, nullptr, nullptr);
    if (!forward || !inverse)
      throw Error(ErrorCode::out_of_memory, fmt::format("no plan for a transform of {}", to_string(shape)));
  }
  ~Plan() {
    kiss_fft_free(forward);
    kiss_fft_free(inverse);
  }
  void run(bool invert, std::span<std::complex<float>> values) {
    auto* data = reinterpret_cast<kiss_fft_cpx*>(values.data());
    kiss_fftnd(invert ? inverse : forward, data, data);
  }

  kiss_fftnd_cfg forward = nullptr, inverse = nullptr;
};

// Double precision: the header's template, one axis at a time. Each pass transforms along the first axis
// and writes the result along the last, so that after as many passes as axes the order is the old one.
template <>
struct Fft<double>::Plan {
  explicit Plan(const Shape& shape) : scratch(static_cast<std::size_t>(shape.element_count())) {
    for (const std::int64_t extent : shape) {
      forward.emplace_back(static_cast<std::size_t>(extent), false);
      inverse.emplace_back(static_cast<std::size_t>(extent), true);
      extents.push_back(static_cast<std::size_t>(extent));
    }
  }
  void run(bool invert, std::span<std::complex<double>> values) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const std::size_t length = extents[axis], stride = values.size() / length;
      const auto& line = (invert ? inverse : forward)[axis];
      for (std::size_t i = 0; i < stride; ++i) line.transform(&values[i], &scratch[i * length], 0, 1, stride);
      std::copy(scratch.begin(), scratch.end(), values.begin());
    }
  }

  std::vector<kissfft<double>> forward, inverse;
  std::vector<std::size_t> extents;
  std::vector<std::complex<double>> scratch;
};

template <class T>
Fft<T>::Fft(const Shape& shape) : shape_(shape) {
  if (shape.rank() == 0 || shape.element_count() == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a Fourier transform needs elements along every axis, not {}", to_string(shape)));
  plan_ = std::make_unique<Plan>(shape);
}

template <class T>
Fft<T>::~Fft() = default;

template <class T>
void Fft<T>::require_size(std::size_t count) const {
  if (count != static_cast<std::size_t>(shape_.element_count()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a transform of {} was given {} values", to_string(shape_), count));
}

template <class T>
void Fft<T>::forward(std::span<std::complex<T>> values) {
  require_size(values.size());
  plan_->run(false, values);
}

template <class T>
void Fft<T>::inverse(std::span<std::complex<T>> values) {
  require_size(values.size());
  plan_->run(true, values);
}

template class Fft<float>;
template class Fft<double>;

template <class T>
Fft<T>& thread_fft(const Shape& shape) {
  thread_local std::map<Shape, Fft<T>> plans;
  return plans.try_emplace(shape, shape).first->second;
}

template Fft<float>& thread_fft<float>(const Shape&);
template Fft<double>& thread_fft<double>(const Shape&);

double fft_flops(const Shape& shape) {
  const auto count = static_cast<double>(shape.element_count());
  return 5.0 * count * std::log2(count);
}

std::vector<std::size_t> fft_shift_targets(const Shape& shape) {
  std::vector<std::size_t> targets{0};
  for (const std::int64_t extent : shape) {
    std::vector<std::size_t> longer;
    for (const std::size_t target : targets)
      for (std::int64_t i = 0; i < extent; ++i)
        longer.push_back(target * static_cast<std::size_t>(extent) +
                         static_cast<std::size_t>((i + extent / 2) % extent));
    targets = std::move(longer);
  }
  return targets;
}

}  // namespace superstep::data
