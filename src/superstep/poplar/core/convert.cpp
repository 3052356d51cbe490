#include "superstep/poplar/core/convert.h"

#include <cstring>
#include <limits>
#include <poplar/exceptions.hpp>

#include "superstep/poplar/core/types.h"

namespace poplar::core {
namespace {

// One value of the host, whole: 64-bit integers do not pass through floating point.
struct Number {
  bool floating = false;
  double real = 0;
  std::int64_t integer = 0;  // the bits of an unsigned one
  bool above = false;        // an unsigned value beyond the signed range
};

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

Number real_number(double value) { return {true, value, 0, false}; }
Number signed_number(std::int64_t value) { return {false, 0, value, false}; }
Number unsigned_number(std::uint64_t value) {
  return {false, 0, static_cast<std::int64_t>(value),
          value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())};
}

Number number_at(const std::byte* from, const TypeTraits& traits) {
  if (traits.isFloat) {
    if (traits.size == sizeof(float)) return real_number(static_cast<double>(read<float>(from)));
    if (traits.size == sizeof(double)) return real_number(read<double>(from));
    if (traits.size == sizeof(std::uint16_t))
      return real_number(static_cast<double>(superstep::f16::widen(read<std::uint16_t>(from))));
    return real_number(static_cast<double>(read<long double>(from)));
  }
  switch (traits.size) {
    case 1:
      return traits.isSigned ? signed_number(read<std::int8_t>(from))
                             : unsigned_number(read<std::uint8_t>(from));
    case 2:
      return traits.isSigned ? signed_number(read<std::int16_t>(from))
                             : unsigned_number(read<std::uint16_t>(from));
    case 4:
      return traits.isSigned ? signed_number(read<std::int32_t>(from))
                             : unsigned_number(read<std::uint32_t>(from));
    default:
      return traits.isSigned ? signed_number(read<std::int64_t>(from))
                             : unsigned_number(read<std::uint64_t>(from));
  }
}

double as_real(const Number& number) {
  if (number.floating) return number.real;
  return number.above ? static_cast<double>(static_cast<std::uint64_t>(number.integer))
                      : static_cast<double>(number.integer);
}

// Fits where the type holds it signed or unsigned: -1 is a way to write all ones.
template <class T>
bool fits(const Number& number) {
  using Signed = std::make_signed_t<T>;
  using Unsigned = std::make_unsigned_t<T>;
  if (number.floating)
    return number.real > static_cast<double>(std::numeric_limits<Signed>::min()) - 1 &&
           number.real < std::ldexp(1.0, std::numeric_limits<Unsigned>::digits);
  if constexpr (sizeof(T) == sizeof(std::int64_t)) return true;
  if (number.above) return false;
  return number.integer >= std::numeric_limits<Signed>::min() &&
         number.integer <= static_cast<std::int64_t>(std::numeric_limits<Unsigned>::max());
}

template <class T>
T integer_of(const Number& number) {
  if (!number.floating) return static_cast<T>(number.integer);
  return number.real < 0 ? static_cast<T>(static_cast<std::int64_t>(number.real))
                         : static_cast<T>(static_cast<std::uint64_t>(number.real));
}

template <class T>
T element_of(const Number& number, const Type& type, const std::string& who) {
  if constexpr (std::is_same_v<T, bool>) {
    return number.floating ? number.real != 0 : number.integer != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (!fits<T>(number))
      throw overflow_error(fmt::format("{}: {} is no {}", who, as_real(number), type.toString()));
    return integer_of<T>(number);
  } else if constexpr (std::is_same_v<T, double>) {
    return as_real(number);
  } else {
    return T(static_cast<float>(as_real(number)));
  }
}

}  // namespace

superstep::Tensor device_values(const Type& type, superstep::Shape shape, const void* source,
                                const TypeTraits& traits, bool splat, const std::string& who) {
  superstep::Tensor result(machine_type(type), std::move(shape));
  const auto* from = static_cast<const std::byte*>(source);
  superstep::dispatch(result.type(), [&]<class T>() {
    std::byte* to = result.bytes();
    T value{};
    for (std::int64_t i = 0; i < result.element_count(); ++i) {
      if (i == 0 || !splat) value = element_of<T>(number_at(from, traits), type, who);
      std::memcpy(to, &value, sizeof(T));
      to += sizeof(T);
      if (!splat) from += traits.size;
    }
  });
  return result;
}

std::optional<double> device_splat(const Type& type, const void* source, const TypeTraits& traits,
                                   const std::string& who) {
  const superstep::Tensor one = device_values(type, superstep::Shape{1}, source, traits, true, who);
  const double value = one.at(0);
  const superstep::Tensor kept = superstep::Tensor::full(one.type(), superstep::Shape{1}, value);
  if (std::memcmp(one.bytes(), kept.bytes(), one.byte_count()) != 0) return std::nullopt;
  return value;
}

}  // namespace poplar::core
