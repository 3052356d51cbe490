#include "superstep/target/pjrt/stablehlo/types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace superstep::target::stablehlo {
namespace {

// The bits of a number in its type, as MLIR takes them for floating types: "0x7F800000".
std::string bits_text(ElementType element, double value) {
  Tensor one(element, Shape{});
  one.set(0, value);
  std::uint64_t bits = 0;
  std::memcpy(&bits, one.bytes(), size_in_bytes(element));
  return fmt::format("0x{:0{}X}", bits, 2 * size_in_bytes(element));
}

std::string floating_text(ElementType element, double value) {
  const bool plain = std::isfinite(value) && value == std::rint(value) && std::abs(value) < 1e6;
  if (plain && !(value == 0 && std::signbit(value))) return fmt::format("{:.1f}", value);
  return bits_text(element, value);
}

template <class T>
std::string integer_text(T value) {
  return fmt::format("{}", value);
}

// Of one element, which may be wider than a double holds.
std::string first_element_text(const Tensor& tensor) {
  return dispatch(tensor.type(), [&]<class T>() -> std::string {
    const T value = tensor.as<T>()[0];
    if constexpr (std::is_same_v<T, bool>)
      return value ? "true" : "false";
    else if constexpr (std::is_integral_v<T>)
      return integer_text(value);
    else
      return floating_text(tensor.type(), tensor.at(0));
  });
}

bool is_splat(const Tensor& tensor) {
  const std::size_t size = size_in_bytes(tensor.type());
  for (std::size_t at = size; at < tensor.byte_count(); at += size)
    if (std::memcmp(tensor.bytes(), tensor.bytes() + at, size) != 0) return false;
  return true;
}

// All elements as one string of hexadecimal digits, byte by byte in the order of memory.
std::string hexadecimal(const Tensor& tensor) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(2 * tensor.byte_count() + 4);
  text = "\"0x";
  for (std::size_t i = 0; i < tensor.byte_count(); ++i) {
    const auto byte = std::to_integer<unsigned>(tensor.bytes()[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text + "\"";
}

// Truth values are packed eight to a byte in MLIR's strings: they are written out, axis by axis.
std::string nested_truths(const Tensor& tensor, int axis, std::int64_t& next) {
  if (axis == tensor.shape().rank()) return tensor.at(next++) != 0 ? "true" : "false";
  std::string text = "[";
  for (std::int64_t i = 0; i < tensor.shape()[axis]; ++i) {
    if (i > 0) text += ", ";
    text += nested_truths(tensor, axis + 1, next);
  }
  return text + "]";
}

std::string elements_text(const Tensor& tensor) {
  if (tensor.element_count() == 0) return "";
  if (is_splat(tensor)) return first_element_text(tensor);
  std::int64_t next = 0;
  return tensor.type() == ElementType::boolean ? nested_truths(tensor, 0, next) : hexadecimal(tensor);
}

}  // namespace

const char* element_name(ElementType element) {
  switch (element) {
    case ElementType::u64: return "ui64";
    case ElementType::u32: return "ui32";
    case ElementType::u16: return "ui16";
    case ElementType::u8: return "ui8";
    case ElementType::boolean: return "i1";
    default: return name_of(element);
  }
}

std::string to_text(const Type& type) {
  std::string text = "tensor<";
  for (std::int64_t extent : type.shape) text += fmt::format("{}x", extent);
  const std::string element = element_name(type.element);
  return text + (type.complex ? "complex<" + element + ">>" : element + ">");
}

std::string array_text(std::span<const std::int64_t> values) {
  return values.empty() ? "array<i64>" : fmt::format("array<i64: {}>", fmt::join(values, ", "));
}

std::string numbers_text(std::span<const std::int64_t> values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string pairs_text(std::span<const std::int64_t> begins, std::span<const std::int64_t> ends) {
  std::string text;
  for (std::size_t i = 0; i < begins.size(); ++i)
    text += fmt::format("{}[{}, {}]", i ? ", " : "", begins[i], ends[i]);
  const std::string elements = begins.empty() ? "" : "[" + text + "]";
  return fmt::format("dense<{}> : tensor<{}x2xi64>", elements, begins.size());
}

std::string element_text(ElementType element, double value) {
  if (element == ElementType::boolean) return value != 0 ? "true" : "false";
  if (is_floating(element)) return floating_text(element, value);
  Tensor one(element, Shape{});
  one.set(0, value);
  return first_element_text(one);
}

std::string dense_text(const Tensor& tensor) {
  return fmt::format("dense<{}> : {}", elements_text(tensor), to_text({tensor.type(), tensor.shape()}));
}

}  // namespace superstep::target::stablehlo
