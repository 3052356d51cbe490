#include "superstep/baseline/ptychography/phase_alignment.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

using data::squared;
using data::thread_fft;
using Complex = std::complex<double>;

double norm(std::span<const std::complex<float>> field) {
  double sum = 0;
  for (const auto& value : field) sum += squared(value);
  return std::sqrt(sum);
}

// sum_r a(r + s) conj(b(r)) for every shift s, from the transforms of a and b.
Field cross_correlation(const Field& a, const Field& b, const Shape& shape) {
  Field product(a.size());
  const float scale = 1.0f / static_cast<float>(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) product[i] = scale * data::multiply_conjugate(b[i], a[i]);
  thread_fft<float>(shape).inverse(product);
  return product;
}

std::size_t largest_at(const Field& field) {
  return static_cast<std::size_t>(
      std::max_element(field.begin(), field.end(), [](auto a, auto b) { return squared(a) < squared(b); }) -
      field.begin());
}

// The vertex of the parabola through the moduli at the peak and its neighbours, along every axis.
std::vector<double> refined_peak(const Field& field, const Shape& shape, std::size_t peak) {
  const auto strides = shape.row_major_strides();
  std::vector<double> place;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto extent = static_cast<std::size_t>(shape[axis]),
               stride = static_cast<std::size_t>(strides[static_cast<std::size_t>(axis)]);
    const std::size_t index = peak / stride % extent, base = peak - index * stride;
    const auto modulus = [&](std::size_t offset) {
      return static_cast<double>(std::abs(field[base + (index + offset) % extent * stride]));
    };
    const double before = modulus(extent - 1), at = modulus(0), after = modulus(1);
    const double bend = before - 2 * at + after;
    const double offset = bend < 0 ? 0.5 * (before - after) / bend : 0;
    const double whole =
        static_cast<double>(index) - (2 * index < extent ? 0.0 : static_cast<double>(extent));
    place.push_back(whole + std::clamp(offset, -0.5, 0.5));
  }
  return place;
}

// The field of a transform, moved back by `shift`.
Field shifted_back(Field transform, const Shape& shape, const std::vector<double>& shift) {
  std::vector<std::vector<std::complex<float>>> turns;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    turns.emplace_back();
    for (std::int64_t k = 0; k < shape[axis]; ++k)
      turns.back().emplace_back(std::polar(1.0, 2 * std::numbers::pi * data::fft_frequency(k, shape[axis]) *
                                                    shift[static_cast<std::size_t>(axis)]));
  }
  const auto strides = shape.row_major_strides();
  const float scale = 1.0f / static_cast<float>(transform.size());
  for (std::size_t i = 0; i < transform.size(); ++i) {
    transform[i] *= scale;
    for (std::size_t axis = 0; axis < turns.size(); ++axis)
      transform[i] = data::multiply(
          transform[i], turns[axis][i / static_cast<std::size_t>(strides[axis]) % turns[axis].size()]);
  }
  thread_fft<float>(shape).inverse(transform);
  return transform;
}

void conjugate(Field& field) {
  for (auto& value : field) value = std::conj(value);
}

constexpr float solid = 0.5f;  // modulus from which a voxel counts as crystal

}  // namespace

AlignedObject align(std::span<const std::complex<float>> object, std::span<const std::complex<float>> truth,
                    const Shape& shape) {
  Field transform(object.begin(), object.end()), reference(truth.begin(), truth.end());
  thread_fft<float>(shape).forward(transform);
  thread_fft<float>(shape).forward(reference);
  // The transform of the twin conj(f(-r)) is the conjugate of that of f.
  Field twin_transform = transform;
  conjugate(twin_transform);
  const Field direct = cross_correlation(transform, reference, shape);
  const Field twin = cross_correlation(twin_transform, reference, shape);
  const std::size_t direct_peak = largest_at(direct), twin_peak = largest_at(twin);

  AlignedObject aligned;
  aligned.twin = squared(twin[twin_peak]) > squared(direct[direct_peak]);
  aligned.shift =
      aligned.twin ? refined_peak(twin, shape, twin_peak) : refined_peak(direct, shape, direct_peak);
  aligned.object = shifted_back(aligned.twin ? twin_transform : transform, shape, aligned.shift);
  Complex inner = 0;
  double moduli = 0, squares = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    inner += Complex(aligned.object[i]) * std::conj(Complex(truth[i]));
    moduli += std::abs(aligned.object[i]) * std::abs(truth[i]);
    squares += squared(aligned.object[i]);
  }
  const double norms = norm(aligned.object) * norm(truth);
  aligned.overlap = norms > 0 ? std::abs(inner) / norms : 0;
  const auto turn =
      static_cast<std::complex<float>>(std::polar(squares > 0 ? moduli / squares : 0, -std::arg(inner)));
  for (auto& value : aligned.object) value = data::multiply(value, turn);
  return aligned;
}

ShapeComparison compare_shapes(std::span<const std::complex<float>> aligned,
                               std::span<const std::complex<float>> truth, const Shape& shape) {
  double both = 0, either = 0, inside = 0, absolute = 0, squares = 0;
  Complex mean = 0;
  std::vector<float> a, b;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    a.push_back(std::min(1.0f, std::abs(aligned[i])));
    b.push_back(std::abs(truth[i]));
    const bool found = a.back() >= solid, there = b.back() >= solid;
    both += found && there;
    either += found || there;
    if (there) mean += Complex(aligned[i]) * std::conj(Complex(truth[i]));
  }
  for (std::size_t i = 0; i < truth.size(); ++i)
    if (b[i] >= solid) {
      const double error = std::arg(Complex(aligned[i]) * std::conj(Complex(truth[i])) * std::conj(mean));
      ++inside;
      absolute += std::abs(error);
      squares += error * error;
    }
  return {either > 0 ? both / either : 0, std::sqrt(squares / inside), absolute / inside,
          structural_similarity(a, b, shape)};
}

Field centered(std::span<const std::complex<float>> object, const Shape& shape) {
  const auto strides = shape.row_major_strides();
  std::vector<std::size_t> moves;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    // On a ring, the mean place is the phase of the first moment.
    const auto extent = static_cast<std::size_t>(shape[axis]),
               stride = static_cast<std::size_t>(strides[static_cast<std::size_t>(axis)]);
    Complex moment = 0;
    for (std::size_t i = 0; i < object.size(); ++i)
      moment += std::polar(
          double{squared(object[i])},
          2 * std::numbers::pi * static_cast<double>(i / stride % extent) / static_cast<double>(extent));
    const double place = std::arg(moment) / (2 * std::numbers::pi) * static_cast<double>(extent);
    const auto whole = static_cast<std::int64_t>(std::lround(static_cast<double>(extent) / 2 - place));
    moves.push_back(static_cast<std::size_t>((whole % shape[axis] + shape[axis]) % shape[axis]));
  }
  Field moved(object.size());
  for (std::size_t i = 0; i < object.size(); ++i) {
    std::size_t target = 0;
    for (std::size_t axis = 0; axis < moves.size(); ++axis) {
      const auto extent = static_cast<std::size_t>(shape[static_cast<int>(axis)]),
                 stride = static_cast<std::size_t>(strides[axis]);
      target += (i / stride + moves[axis]) % extent * stride;
    }
    moved[target] = object[i];
  }
  return moved;
}

}  // namespace superstep::baseline
