#include "superstep/run/serve/sound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"

namespace superstep::run {
namespace {

// The bits of a number's exponent; all of them are set where it is NaN or infinite (IEEE 754, and bf16).
template <class T>
constexpr auto exponent_bits() {
  if constexpr (sizeof(T) == 8)
    return std::uint64_t{0x7ff0000000000000};
  else if constexpr (sizeof(T) == 4)
    return std::uint32_t{0x7f800000};
  else
    return std::uint16_t{element_type_of<T> == ElementType::f16 ? 0x7c00 : 0x7f80};
}

template <class T>
bool are_finite(std::span<const T> values) {
  constexpr auto exponent = exponent_bits<T>();
  bool any = false;
  for (const T& value : values)
    any |= (std::bit_cast<std::remove_const_t<decltype(exponent)>>(value) & exponent) == exponent;
  return !any;
}

template <class T>
bool is_zero(T value) {
  if constexpr (std::is_same_v<T, double>)
    return value == 0;
  else
    return static_cast<float>(value) == 0;
}

// Rows [first, first + count) along the first axis, below 0: all from `first` on, of which `is_bad` holds.
template <class IsBad>
std::int64_t count_rows(const Tensor& tensor, std::int64_t first, std::int64_t count, const IsBad& is_bad) {
  const auto& extents = tensor.shape().extents();
  const std::int64_t rows = extents.empty() ? 1 : extents[0];
  if (!is_floating(tensor.type()) || tensor.element_count() == 0) return 0;
  const std::int64_t last = count < 0 ? rows : first + count;
  const auto row = static_cast<std::size_t>(tensor.element_count() / rows);
  std::int64_t found = 0;
  dispatch(tensor.type(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>)
      for (std::int64_t i = first; i < last; ++i)
        found += is_bad(std::span<const T>(tensor.as<T>().subspan(static_cast<std::size_t>(i) * row, row)));
  });
  return found;
}

template <class T>
auto as_number(const T& value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<float>(value);
}

bool is_all_zero(const Tensor& tensor) {
  bool zero = true;
  dispatch(tensor.type(), [&]<class T>() { zero = std::ranges::all_of(tensor.as<T>(), is_zero<T>); });
  return zero;
}

}  // namespace

std::int64_t count_not_finite(const Tensor& tensor) {
  std::int64_t found = 0;
  if (!is_floating(tensor.type())) return found;
  dispatch(tensor.type(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>)
      for (const T& value : tensor.as<T>()) found += !are_finite(std::span<const T>(&value, 1));
  });
  return found;
}

std::int64_t rows_not_finite(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  return count_rows(tensor, first, count, []<class T>(std::span<const T> row) { return !are_finite(row); });
}

std::int64_t rows_outside(const Tensor& tensor, double low, double high, std::int64_t first,
                          std::int64_t count) {
  return count_rows(tensor, first, count, [&]<class T>(std::span<const T> row) {
    using Number = decltype(as_number(row[0]));
    const auto least = static_cast<Number>(low), most = static_cast<Number>(high);
    bool any = false;
    for (const T& value : row) any |= (as_number(value) < least) | (as_number(value) > most);
    return any;
  });
}

FiniteRange finite_range(const Tensor& tensor) {
  FiniteRange range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  dispatch(tensor.type(), [&]<class T>() {
    for (const T& value : tensor.as<T>()) {
      const auto number = static_cast<double>(as_number(value));
      if (!std::isfinite(number)) continue;
      range.low = std::min(range.low, number);
      range.high = std::max(range.high, number);
    }
  });
  return range;
}

void require_sound(const std::map<std::string, Tensor>& states, const std::string& where) {
  bool any_weights = false, all_zero = true;
  for (const auto& [name, tensor] : states) {
    if (!is_floating(tensor.type()) || tensor.element_count() == 0) continue;
    if (const std::int64_t bad = count_not_finite(tensor); bad > 0)
      throw Error(ErrorCode::bad_file,
                  fmt::format("{} of the {} weights of '{}' are not finite", bad, tensor.element_count(),
                              printable(name)),
                  where, "the training diverged, or the file is damaged: take an earlier checkpoint");
    if (tensor.element_count() == 1) continue;  // a rate, a counter
    any_weights = true;
    all_zero = all_zero && is_all_zero(tensor);
  }
  if (any_weights && all_zero)
    throw Error(ErrorCode::bad_file, "all weights are zero", where,
                "what answers by them says the same to everything: train the model, or take another file");
}

}  // namespace superstep::run
