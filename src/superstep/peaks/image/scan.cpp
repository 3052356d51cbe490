#include "superstep/peaks/image/scan.h"

#include <algorithm>
#include <cmath>

namespace superstep::peaks {
namespace {

// Calls hit(begin) for every block of which `any(begin, end)` says so.
template <class Any>
int scan_row(std::int32_t width, std::int32_t* found, Any any) {
  int count = 0;
  std::int32_t begin = 0;
  for (; begin + scan_block <= width; begin += scan_block)
    if (any(begin, begin + scan_block)) found[count++] = begin;
  if (begin < width && any(begin, width)) found[count++] = begin;
  return count;
}

// Whole numbers as they are: their largest says it, in as many lanes as a vector has of their type.
template <class T>
int scan_counts(const T* pixels, std::int32_t width, double threshold, std::int32_t* found) {
  using Limits = std::numeric_limits<T>;
  if (threshold >= static_cast<double>(Limits::max())) return 0;
  const bool all = threshold < static_cast<double>(Limits::lowest());
  const T limit = all ? T{} : static_cast<T>(std::floor(threshold));
  return scan_row(width, found, [=](std::int32_t begin, std::int32_t end) {
    T highest = pixels[begin];
    for (std::int32_t i = begin; i < end; ++i) highest = std::max(highest, pixels[i]);
    return all || highest > limit;
  });
}

template <class Value>
int scan_values(std::int32_t width, float limit, std::int32_t* found, Value value) {
  return scan_row(width, found, [=](std::int32_t begin, std::int32_t end) {
    std::int32_t any = 0;  // as wide as an f32
    for (std::int32_t i = begin; i < end; ++i) any |= static_cast<std::int32_t>(value(i) > limit);
    return any != 0;
  });
}

template <class T>
int scan(const T* pixels, const float* dark, const float* gain, std::int32_t width, double threshold,
         std::int32_t* found) {
  const float limit = limit_of(threshold);
  const auto count = [=](std::int32_t i) { return static_cast<float>(pixels[i]); };
  if (dark && gain)
    return scan_values(width, limit, found, [=](std::int32_t i) { return (count(i) - dark[i]) * gain[i]; });
  if (dark) return scan_values(width, limit, found, [=](std::int32_t i) { return count(i) - dark[i]; });
  if (gain) return scan_values(width, limit, found, [=](std::int32_t i) { return count(i) * gain[i]; });
  if constexpr (std::is_integral_v<T>)
    return scan_counts(pixels, width, threshold, found);
  else
    return scan_values(width, limit, found, count);
}

}  // namespace

float limit_of(double threshold) {
  const auto nearest = static_cast<float>(threshold);
  return double{nearest} > threshold ? std::nextafter(nearest, -std::numeric_limits<float>::infinity())
                                     : nearest;
}

int RowScan::blocks(std::int32_t row, std::int32_t* found) const {
  const Correction& by = frame_.correction();
  const std::size_t first = static_cast<std::size_t>(row) * static_cast<std::size_t>(frame_.width());
  int count = 0;
  for_pixels(frame_.type(), [&]<class T>() {
    count = scan(reinterpret_cast<const T*>(frame_.pixels()) + first,
                 by.dark.empty() ? nullptr : by.dark.data() + first,
                 by.gain.empty() ? nullptr : by.gain.data() + first, frame_.width(), threshold_, found);
  });
  return count;
}

}  // namespace superstep::peaks
