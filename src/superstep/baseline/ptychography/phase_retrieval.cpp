#include "superstep/baseline/ptychography/phase_retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

using data::squared;
using data::thread_fft;

void require_valid(std::span<const float> magnitude, const Shape& shape) {
  const auto bad = [](std::string what) {
    throw Error(ErrorCode::invalid_argument, std::move(what), "phase retrieval");
  };
  if (static_cast<std::int64_t>(magnitude.size()) != shape.element_count())
    bad(fmt::format("{} magnitudes for a pattern of {}", magnitude.size(), to_string(shape)));
  if (!std::all_of(magnitude.begin(), magnitude.end(),
                   [](float value) { return std::isfinite(value) && value >= 0; }))
    bad("a magnitude is negative or not finite");
  if (std::all_of(magnitude.begin(), magnitude.end(), [](float value) { return value == 0; }))
    bad("the pattern has no count");
}

// 1 in the middle half of every axis.
std::vector<std::uint8_t> middle_half(const Shape& shape) {
  std::vector<std::uint8_t> inside{1};
  for (const std::int64_t extent : shape) {
    std::vector<std::uint8_t> longer;
    for (const std::uint8_t outer : inside)
      for (std::int64_t i = 0; i < extent; ++i)
        longer.push_back(outer && 4 * i >= extent && 4 * i < 3 * extent);
    inside = std::move(longer);
  }
  return inside;
}

// Gives the transform of `object` the measured magnitude: the projection that both methods share.
void project_on_magnitude(Field& object, const Shape& shape, std::span<const float> magnitude) {
  auto& fft = thread_fft<float>(shape);
  fft.forward(object);
  const float scale = 1.0f / static_cast<float>(object.size());
  for (std::size_t i = 0; i < object.size(); ++i) {
    const float power = squared(object[i]);
    object[i] *= power > 0 ? scale * magnitude[i] / std::sqrt(power) : 0.0f;
  }
  fft.inverse(object);
}

// The next object from the last one and its projection: both keep the projection inside the support; ER
// clears the rest, HIO pushes back what it finds there.
void hio_step(Field& object, const Field& projected, const std::vector<std::uint8_t>& support, float beta) {
  for (std::size_t i = 0; i < object.size(); ++i)
    object[i] = support[i] ? projected[i] : object[i] - beta * projected[i];
}

void er_step(Field& object, const Field& projected, const std::vector<std::uint8_t>& support) {
  for (std::size_t i = 0; i < object.size(); ++i) object[i] = support[i] ? projected[i] : 0.0f;
}

// Multiplies a transform by that of a Gaussian of unit sum.
void blur(Field& transform, const Shape& shape, double sigma) {
  const auto strides = shape.row_major_strides();
  std::vector<std::vector<float>> factors;
  for (const std::int64_t extent : shape) {
    factors.emplace_back();
    for (std::int64_t k = 0; k < extent; ++k) {
      const double turn = std::numbers::pi * sigma * data::fft_frequency(k, extent);
      factors.back().push_back(static_cast<float>(std::exp(-2 * turn * turn)));
    }
  }
  for (std::size_t i = 0; i < transform.size(); ++i)
    for (std::size_t axis = 0; axis < factors.size(); ++axis)
      transform[i] *= factors[axis][i / static_cast<std::size_t>(strides[axis]) % factors[axis].size()];
}

}  // namespace

bool is_hio(const RetrievalSettings& settings, int index) {
  if (index < settings.er_first || index >= settings.iterations - settings.er_last) return false;
  return (index - settings.er_first) % (settings.cycle_hio + settings.cycle_er) < settings.cycle_hio;
}

std::vector<std::uint8_t> shrink_wrapped(std::span<const std::complex<float>> object, const Shape& shape,
                                         double sigma, double threshold) {
  Field modulus;
  modulus.reserve(object.size());
  for (const auto& value : object) modulus.emplace_back(std::sqrt(squared(value)));
  auto& fft = thread_fft<float>(shape);
  fft.forward(modulus);
  blur(modulus, shape, sigma);
  fft.inverse(modulus);
  float largest = 0;
  for (const auto& value : modulus) largest = std::max(largest, value.real());
  std::vector<std::uint8_t> support;
  support.reserve(modulus.size());
  for (const auto& value : modulus) support.push_back(value.real() >= threshold * largest);
  return support;
}

double diffraction_chi2(std::span<const std::complex<float>> object, const Shape& shape,
                        std::span<const float> magnitude) {
  Field transform(object.begin(), object.end());
  thread_fft<float>(shape).forward(transform);
  double error = 0, total = 0;
  for (std::size_t i = 0; i < transform.size(); ++i) {
    const double difference = std::sqrt(squared(transform[i])) - magnitude[i];
    error += difference * difference;
    total += double{magnitude[i]} * magnitude[i];
  }
  return error / total;
}

Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, RandomStream& random) {
  require_valid(magnitude, shape);
  Retrieval result;
  result.support = middle_half(shape);
  for (const std::uint8_t inside : result.support)
    result.object.emplace_back(inside ? static_cast<float>(random.uniform()) : 0.0f);
  Field projected;
  double sigma = settings.sigma_first;
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    projected = result.object;
    project_on_magnitude(projected, shape, magnitude);
    if (is_hio(settings, iteration))
      hio_step(result.object, projected, result.support, static_cast<float>(settings.beta));
    else
      er_step(result.object, projected, result.support);
    if ((iteration + 1) % settings.shrink_every == 0 && iteration + 1 < settings.iterations) {
      result.support = shrink_wrapped(projected, shape, sigma, settings.threshold);
      sigma = std::max(settings.sigma_last, 0.9 * sigma);
    }
  }
  for (std::size_t i = 0; i < result.object.size(); ++i)
    if (!result.support[i]) result.object[i] = 0;
  result.chi2 = diffraction_chi2(result.object, shape, magnitude);
  return result;
}

}  // namespace superstep::baseline
