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

// Gives the transform of `object` the measured magnitude: the projection that both methods share. Returns
// sum (|F object| - magnitude)^2 of the object as it was.
double project_on_magnitude(Field& object, const Shape& shape, std::span<const float> magnitude) {
  auto& fft = thread_fft<float>(shape);
  fft.forward(object);
  const float scale = 1.0f / static_cast<float>(object.size());
  double error = 0;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const float found = std::sqrt(squared(object[i])), difference = found - magnitude[i];
    error += double{difference} * difference;
    object[i] *= found > 0 ? scale * magnitude[i] / found : 0.0f;
  }
  fft.inverse(object);
  return error;
}

double power_of(std::span<const float> magnitude) {
  double power = 0;
  for (const float value : magnitude) power += double{value} * value;
  return power;
}

void require_start(const Field& start, const Shape& shape) {
  const auto bad = [](std::string what) {
    throw Error(ErrorCode::invalid_argument, std::move(what), "phase retrieval");
  };
  if (static_cast<std::int64_t>(start.size()) != shape.element_count())
    bad(fmt::format("a start of {} voxels for a pattern of {}", start.size(), to_string(shape)));
  double power = 0;
  for (const auto& value : start) power += squared(value);
  if (!std::isfinite(power)) bad("the start holds what is not finite");
  if (power == 0) bad("the start is zero everywhere");
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

double share_beyond_half(std::span<const float> magnitude, const Shape& shape) {
  Field field;
  for (const float value : magnitude) field.emplace_back(value * value);
  thread_fft<float>(shape).inverse(field);
  const auto strides = shape.row_major_strides();
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < field.size(); ++i)
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (static_cast<std::int64_t>(i) / strides[static_cast<std::size_t>(axis)] % shape[axis] ==
          shape[axis] / 2) {
        sum += std::abs(field[i]);
        ++count;
      }
  return sum / count / std::abs(field[0]);
}

void scale_to(Field& object, const Shape& shape, std::span<const float> magnitude) {
  Field transform = object;
  thread_fft<float>(shape).forward(transform);
  double both = 0, own = 0;
  for (std::size_t i = 0; i < transform.size(); ++i) {
    const double power = squared(transform[i]);
    own += power;
    both += std::sqrt(power) * magnitude[i];
  }
  const auto scale = static_cast<float>(own > 0 ? both / own : 1);
  for (auto& value : object) value *= scale;
}

namespace {

// From result.object inside result.support.
void iterate(Retrieval& result, std::span<const float> magnitude, const Shape& shape,
             const RetrievalSettings& settings, NoteObject note) {
  Field projected;
  const double power = power_of(magnitude);
  double sigma = settings.sigma_first;
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    projected = result.object;
    const double error = project_on_magnitude(projected, shape, magnitude);
    if (iteration == 0 || !is_hio(settings, iteration - 1)) note(iteration, error / power, result.object);
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
  note(settings.iterations, result.chi2, result.object);
}

}  // namespace

Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, RandomStream& random, NoteObject note) {
  require_valid(magnitude, shape);
  Retrieval result;
  result.support = middle_half(shape);
  for (const std::uint8_t inside : result.support)
    result.object.emplace_back(inside ? static_cast<float>(random.uniform()) : 0.0f);
  iterate(result, magnitude, shape, settings, note);
  return result;
}

Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, RandomStream& random) {
  return retrieve_phase(magnitude, shape, settings, random, [](int, double, const Field&) {});
}

Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, Field start, NoteObject note) {
  require_valid(magnitude, shape);
  require_start(start, shape);
  Retrieval result;
  result.object = std::move(start);
  scale_to(result.object, shape, magnitude);
  result.support = shrink_wrapped(result.object, shape, settings.sigma_first, settings.threshold);
  for (std::size_t i = 0; i < result.object.size(); ++i)
    if (!result.support[i]) result.object[i] = 0;
  iterate(result, magnitude, shape, settings, note);
  return result;
}

}  // namespace superstep::baseline
