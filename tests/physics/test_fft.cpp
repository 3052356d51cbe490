#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/physics/fft.h"

namespace superstep::data {
namespace {

template <class T>
std::vector<std::complex<T>> random_values(const Shape& shape) {
  RandomStream random(5);
  std::vector<std::complex<T>> values(static_cast<std::size_t>(shape.element_count()));
  for (auto& value : values) value = {static_cast<T>(random.normal()), static_cast<T>(random.normal())};
  return values;
}

// The definition, one axis after another.
template <class T>
std::vector<std::complex<double>> transform_by_definition(const std::vector<std::complex<T>>& in,
                                                          const Shape& shape, double sign) {
  std::vector<std::complex<double>> values(in.begin(), in.end());
  const auto strides = shape.row_major_strides();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t n = shape[axis], stride = strides[static_cast<std::size_t>(axis)];
    std::vector<std::complex<double>> next(values.size());
    for (std::int64_t i = 0; i < shape.element_count(); ++i) {
      const std::int64_t k = i / stride % n, base = i - k * stride;
      for (std::int64_t x = 0; x < n; ++x)
        next[static_cast<std::size_t>(i)] +=
            values[static_cast<std::size_t>(base + x * stride)] *
            std::polar(1.0,
                       sign * 2 * std::numbers::pi * static_cast<double>(k * x % n) / static_cast<double>(n));
    }
    values = next;
  }
  return values;
}

template <class T>
double distance(const std::vector<std::complex<T>>& a, const std::vector<std::complex<double>>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::norm(std::complex<double>(a[i]) - b[i]);
    size += std::norm(b[i]);
  }
  return std::sqrt(difference / size);
}

template <class T>
void expect_definition(const Shape& shape, double tolerance) {
  const auto values = random_values<T>(shape);
  auto forward = values, inverse = values;
  thread_fft<T>(shape).forward(forward);
  thread_fft<T>(shape).inverse(inverse);
  EXPECT_LT(distance(forward, transform_by_definition(values, shape, -1)), tolerance) << to_string(shape);
  EXPECT_LT(distance(inverse, transform_by_definition(values, shape, +1)), tolerance) << to_string(shape);
  EXPECT_GT(distance(forward, transform_by_definition(values, shape, +1)), 0.1);  // the sign matters
}

TEST(Fft, AgreesWithTheDefinitionForEveryRank) {
  for (const Shape& shape : {Shape{8}, Shape{7}, Shape{6, 10}, Shape{16, 4}, Shape{4, 6, 5}}) {
    expect_definition<float>(shape, 1e-6);
    expect_definition<double>(shape, 1e-14);
  }
}

TEST(Fft, InverseUndoesForwardAndOneElementStays) {
  for (const Shape& shape : {Shape{1}, Shape{12, 8}, Shape{4, 4, 8}}) {
    const auto values = random_values<double>(shape);
    auto copy = values;
    thread_fft<double>(shape).forward(copy);
    thread_fft<double>(shape).inverse(copy);
    for (auto& value : copy) value /= static_cast<double>(shape.element_count());
    EXPECT_LT(distance(copy, values), 1e-14);
  }
}

TEST(Fft, ShiftMovesFrequencyZeroToTheCentre) {
  const std::vector<int> line{0, 1, 2, 3, 4};
  std::vector<int> shifted(5);
  fft_shift<int>(line, {5}, shifted);
  EXPECT_EQ(shifted, (std::vector<int>{3, 4, 0, 1, 2}));  // as numpy.fft.fftshift
  std::vector<int> grid(24), moved(24);
  grid[0] = 1;
  fft_shift<int>(grid, {4, 6}, moved);
  EXPECT_EQ(moved[2 * 6 + 3], 1);
}

TEST(Fft, RefusesEmptyShapesAndWrongSizes) {
  EXPECT_THROW(Fft<float>({4, 0}), Error);
  EXPECT_THROW(Fft<float>(Shape{}), Error);
  std::vector<std::complex<float>> values(7);
  try {
    thread_fft<float>({2, 4}).forward(values);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.message().find("[2,4] was given 7 values"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace superstep::data
