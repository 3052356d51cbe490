#include "superstep/base/encoding/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace superstep {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 0xff;

constexpr std::array<std::uint8_t, 256> value_of_digit = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(no_digit);
  for (std::size_t i = 0; i < digits.size(); ++i)
    table[static_cast<unsigned char>(digits[i])] = static_cast<std::uint8_t>(i);
  return table;
}();

std::size_t padding_of(std::string_view text) {
  if (text.ends_with("==")) return 2;
  return text.ends_with("=") ? 1 : 0;
}

}  // namespace

std::string base64_encode(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t block = 0;
    for (std::size_t k = 0; k < 3; ++k)
      block = block << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? digits[block >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::vector<std::byte>> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = padding_of(text);
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t count = i + 4 == text.size() ? 4 - padding : 4;  // digits that carry bits
    std::uint32_t block = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t value = k < count ? value_of_digit[static_cast<unsigned char>(text[i + k])] : 0;
      if (value == no_digit) return std::nullopt;
      block = block << 6 | value;
    }
    for (std::size_t k = 0; k + 1 < count; ++k) bytes.push_back(std::byte(block >> (16 - 8 * k) & 0xff));
    if (count < 4 && (block & (count == 2 ? 0xffffu : 0xffu)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace superstep
