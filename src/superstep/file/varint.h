// Whole numbers of varying length, as protocol buffers, Thrift, Parquet and Snappy write them: seven bits a
// byte, the lowest first; the high bit of a byte says that more come.
#pragma once

#include <cstdint>
#include <optional>

namespace superstep::data {

// `next` gives a byte, or throws. Nothing where the number does not end within `most_bits`.
template <class Next>
std::optional<std::uint64_t> read_varint(Next&& next, int most_bits = 64) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < most_bits; shift += 7) {
    const auto byte = static_cast<std::uint64_t>(next());
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace superstep::data
