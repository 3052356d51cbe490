// github.com/google/snappy, format_description.txt: the length, then pieces, each behind a byte whose two low
// bits say whether it is new bytes or a copy of what came before, and how its length and distance are
// written.
#include "superstep/file/packing/snappy.h"

#include <algorithm>
#include <cstdint>

#include "superstep/file/varint.h"

namespace superstep::data {
namespace {

struct Cursor {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
  bool sound = true;

  std::size_t left() const { return bytes.size() - at; }
  // Little-endian; 0, and no longer sound, where there are not as many bytes.
  std::size_t number(std::size_t count) {
    if (left() < count) {
      sound = false;
      return 0;
    }
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value |= std::to_integer<std::size_t>(bytes[at++]) << 8 * i;
    return value;
  }
  std::uint64_t varint() {
    constexpr int most_bits = 35;  // of a length in 32 bits
    const auto value = read_varint([&] { return number(1); }, most_bits);
    sound = sound && value;
    return value.value_or(0);
  }
};

struct Copy {
  std::size_t length = 0, distance = 0;
};

Copy copy_at(Cursor& from, std::size_t tag) {
  if ((tag & 3) == 1) return {(tag >> 2 & 7) + 4, (tag >> 5) << 8 | from.number(1)};
  const std::size_t length = (tag >> 2) + 1;
  return {length, from.number((tag & 3) == 2 ? 2 : 4)};
}

std::size_t literal_length(Cursor& from, std::size_t tag) {
  const std::size_t length = tag >> 2;
  constexpr std::size_t longest_in_tag = 60;  // from here on it says how many bytes the length has
  return length < longest_in_tag ? length + 1 : from.number(length - longest_in_tag + 1) + 1;
}

}  // namespace

bool unpack_snappy(std::span<const std::byte> packed, std::span<std::byte> to) {
  Cursor from{packed};
  if (from.varint() != to.size()) return false;
  std::size_t done = 0;
  while (from.sound && from.left() > 0) {
    const std::size_t tag = from.number(1);
    if ((tag & 3) == 0) {
      const std::size_t length = literal_length(from, tag);
      if (!from.sound || length > from.left() || length > to.size() - done) return false;
      std::copy_n(packed.data() + from.at, length, to.data() + done);
      from.at += length, done += length;
    } else {
      const Copy copy = copy_at(from, tag);
      if (!from.sound || copy.distance == 0 || copy.distance > done || copy.length > to.size() - done)
        return false;
      std::byte* const at = to.data() + done;
      if (copy.distance >= copy.length)
        std::copy_n(at - copy.distance, copy.length, at);
      else  // it reaches into what it makes: byte by byte
        for (std::size_t i = 0; i < copy.length; ++i)
          at[i] = at[static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(copy.distance)];
      done += copy.length;
    }
  }
  return from.sound && done == to.size();
}

}  // namespace superstep::data
