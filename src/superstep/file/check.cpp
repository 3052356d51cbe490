#include "superstep/file/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::data {
namespace {

std::string index_text(const Tensor& tensor, std::int64_t flat, std::int64_t first_row) {
  std::string text;
  const auto strides = tensor.shape().row_major_strides();
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const std::int64_t index = flat / strides[axis] + (axis == 0 ? first_row : 0);
    text += (axis ? "," : "") + std::to_string(index);
    flat %= strides[axis];
  }
  return "[" + text + "]";
}

// As few digits as tell the value from its neighbours of the same type.
std::string value_text(const Tensor& tensor, double value) {
  const bool narrow = is_floating(tensor.type()) && tensor.type() != ElementType::f64;
  return !narrow ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

// Whether x - x is 0 for all: false for NaN and infinities. Compiles to vector code.
template <class T>
bool all_finite(std::span<const T> values) {
  bool finite = true;
  for (const T value : values) finite &= value - value == T{0};
  return finite;
}

bool surely_finite(const Tensor& tensor) {
  if (!is_floating(tensor.type())) return true;
  if (tensor.type() == ElementType::f32) return all_finite(tensor.as<float>());
  if (tensor.type() == ElementType::f64) return all_finite(tensor.as<double>());
  return false;  // looked at one by one
}

template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The index of the first number that `To` cannot hold as it is; -1: there is none.
template <Integer To, class From>
std::int64_t first_not_of(const Tensor& tensor) {
  const double low = static_cast<double>(std::numeric_limits<To>::lowest());
  const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
  const auto is_held = [&](From value) {
    if constexpr (std::is_same_v<From, bool>) {
      return true;
    } else if constexpr (Integer<From>) {
      return std::in_range<To>(value);
    } else {
      using Wide = std::conditional_t<std::is_same_v<From, double>, double, float>;
      const double number = static_cast<Wide>(value);
      return number == std::floor(number) && number >= low && number < end;
    }
  };
  const auto values = tensor.as<From>();
  const auto found = std::ranges::find_if_not(values, is_held);
  return found == values.end() ? -1 : found - values.begin();
}

}  // namespace

bool is_narrower_integer(ElementType type, ElementType from) {
  return dispatch(type, [&]<class To>() {
    return dispatch(from, []<class From>() {
      if constexpr (!Integer<To> || std::is_same_v<From, bool>)
        return false;
      else if constexpr (Integer<From>)
        return !std::in_range<To>(std::numeric_limits<From>::lowest()) ||
               !std::in_range<To>(std::numeric_limits<From>::max());
      else
        return true;
    });
  });
}

void require_integers_of(ElementType type, const Tensor& tensor, std::string_view where,
                         std::int64_t first_row) {
  const std::int64_t found = dispatch(type, [&]<class To>() {
    return dispatch(tensor.type(), [&]<class From>() -> std::int64_t {
      if constexpr (Integer<To>)
        return first_not_of<To, From>(tensor);
      else
        return -1;
    });
  });
  if (found < 0) return;
  throw Error(
      ErrorCode::bad_file,
      fmt::format("it holds {} at {}, and is read as whole numbers of {}",
                  value_text(tensor, tensor.at(found)), index_text(tensor, found, first_row), name_of(type)),
      std::string(where), "write it in this type, with the scale and the offset that are meant");
}

void require_finite(const Tensor& tensor, std::string_view where, std::int64_t first_row) {
  if (surely_finite(tensor)) return;
  std::int64_t first = -1, count = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (!std::isfinite(tensor.at(i))) {
      if (first < 0) first = i;
      ++count;
    }
  if (count == 0) return;
  const std::string all =
      count == 1 ? "" : fmt::format(", the first of {} that are no finite numbers", count);
  throw Error(ErrorCode::bad_file,
              fmt::format("it holds {} at {}{}", value_text(tensor, tensor.at(first)),
                          index_text(tensor, first, first_row), all),
              std::string(where), "remove the sample or replace the value");
}

void require_in_range(const Tensor& tensor, double low, double high, std::string_view where,
                      std::int64_t first_row) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const double value = tensor.at(i);
    if (!(value >= low && value <= high))
      throw Error(ErrorCode::bad_file,
                  fmt::format("it holds {} at {}, outside [{}, {}]", value_text(tensor, value),
                              index_text(tensor, i, first_row), low, high),
                  std::string(where));
  }
}

// Arrays of zeros pack to a thousandth (deflate's own limit is 1032:1), data that were measured to a tenth.
// Both bounds are chosen: what is below either is unpacked, within the memory that there is.
void require_plausible_ratio(double unpacked, double packed, std::string_view where) {
  constexpr double most_bytes = double{1 << 30}, most_times = 200;
  if (unpacked <= most_bytes || unpacked <= most_times * packed) return;
  throw Error(ErrorCode::bad_file,
              fmt::format("unpacks to {} from {}, more than {} times as much", format_bytes(unpacked),
                          format_bytes(packed), most_times),
              std::string(where), "if it is meant so, unpack it first, and give what comes out");
}

}  // namespace superstep::data
