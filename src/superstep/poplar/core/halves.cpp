// Halves of the device in the host's memory.
#include <cmath>
#include <cstring>
#include <poplar/Target.hpp>

#include "superstep/base/element_type.h"

namespace poplar {
namespace {

using superstep::f16;

// Of a double: first to single, so that what is rounded away still shows in the last place (odd), then to
// half. Rounding to nearest twice would round some numbers the wrong way.
float to_odd(double value) {
  float result = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(result) || static_cast<double>(result) == value) return result;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &result, sizeof bits);
  if (std::abs(static_cast<double>(result)) > std::abs(value)) --bits;  // towards zero, then odd
  bits |= 1;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

template <class From, class To>
void to_halves(const From* source, void* destination, std::size_t count, To&& to_float) {
  auto* out = static_cast<std::byte*>(destination);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = f16(to_float(source[i])).bits;
    std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
  }
}

template <class To>
void from_halves(const void* source, To* destination, std::size_t count) {
  const auto* in = static_cast<const std::byte*>(source);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, in + i * sizeof bits, sizeof bits);
    destination[i] = static_cast<To>(f16::widen(bits));
  }
}

}  // namespace

void copyFloatToDeviceHalf(const Target&, const float* source, void* destination, std::size_t count) {
  to_halves(source, destination, count, [](float value) { return value; });
}
void copyDoubleToDeviceHalf(const Target&, const double* source, void* destination, std::size_t count) {
  to_halves(source, destination, count, to_odd);
}
void copyDeviceHalfToFloat(const Target&, const void* source, float* destination, std::size_t count) {
  from_halves(source, destination, count);
}
void copyDeviceHalfToDouble(const Target&, const void* source, double* destination, std::size_t count) {
  from_halves(source, destination, count);
}

}  // namespace poplar
