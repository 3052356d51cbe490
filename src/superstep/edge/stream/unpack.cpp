#include "superstep/edge/stream/unpack.h"

#include <fmt/format.h>
#include <lz4.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/edge/stream/bit_rows.h"

namespace superstep::edge {
namespace {

constexpr std::size_t most_block = std::size_t{1} << 26;

[[noreturn]] void refuse(const char* why) { throw Error(ErrorCode::bad_file, why, "compressed pixels"); }

// Big-endian, from the front.
std::uint64_t take_number(std::span<const std::byte>& bytes, std::size_t width) {
  if (bytes.size() < width) refuse("end too early");
  std::uint64_t value = 0;
  for (const std::byte byte : bytes.first(width)) value = value << 8 | static_cast<std::uint64_t>(byte);
  bytes = bytes.subspan(width);
  return value;
}

std::span<const std::byte> take_block(std::span<const std::byte>& bytes) {
  const std::uint64_t size = take_number(bytes, 4);
  if (size > bytes.size()) refuse("end too early");
  const std::span<const std::byte> block = bytes.first(size);
  bytes = bytes.subspan(size);
  return block;
}

void expand(std::span<const std::byte> from, std::span<std::byte> to) {
  const int size =
      LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(to.data()),
                          static_cast<int>(from.size()), static_cast<int>(to.size()));
  if (size < 0 || static_cast<std::size_t>(size) != to.size())
    refuse("are no LZ4 block of the size that was said");
}

void unpack_lz4(std::span<const std::byte> packed, std::size_t block, std::span<std::byte> to) {
  for (std::size_t at = 0; at < to.size(); at += block) {
    const std::span<std::byte> part = to.subspan(at, std::min(block, to.size() - at));
    const std::span<const std::byte> from = take_block(packed);
    if (from.size() == part.size())
      std::ranges::copy(from, part.begin());  // did not get smaller
    else
      expand(from, part);
  }
  if (!packed.empty()) refuse("go on behind their end");
}

// Blocks of a multiple of eight elements; up to seven elements at the end are as they were.
void unpack_bslz4(std::span<const std::byte> packed, std::size_t block, std::size_t element_bytes,
                  std::span<std::byte> to) {
  const std::size_t eight = 8 * element_bytes;
  if (block % eight != 0) refuse("have blocks of no multiple of eight elements");
  const std::size_t whole = to.size() / eight * eight;
  std::vector<std::byte> shuffled, planes;
  for (std::size_t at = 0; at < whole; at += block) {
    const std::span<std::byte> part = to.subspan(at, std::min(block, whole - at));
    shuffled.resize(part.size());
    expand(take_block(packed), shuffled);
    rows_to_elements(shuffled, element_bytes, part, planes);
  }
  if (packed.size() != to.size() - whole) refuse("have another number of elements at their end");
  std::ranges::copy(packed, to.begin() + static_cast<std::ptrdiff_t>(whole));
}

}  // namespace

std::vector<std::byte> unpack(std::string_view method, std::size_t element_bytes,
                              std::span<const std::byte> packed, std::size_t size) {
  if (method != "lz4" && method != "bslz4")
    throw Error(ErrorCode::unsupported, fmt::format("are compressed by '{}'", method.substr(0, 40)), "pixels",
                "lz4 and bslz4 are read");
  if (take_number(packed, 8) != size) refuse("are of another size than their shape");
  std::size_t block = take_number(packed, 4);
  if (block == 0 && method == "bslz4") {  // bitshuffle's own choice: 8 kB, at least 128 elements
    block = std::max<std::size_t>(8192 / element_bytes / 8 * 8, 128) * element_bytes;
  }
  if (block == 0 || block > most_block) refuse("have blocks of no possible size");
  // LZ4 makes at most 255 bytes of one: what claims more is refused before memory is taken.
  if (size / 255 > packed.size() + 16) refuse("are too few for their size");
  std::vector<std::byte> elements(size);
  if (method == "lz4")
    unpack_lz4(packed, block, elements);
  else
    unpack_bslz4(packed, block, element_bytes, elements);
  return elements;
}

}  // namespace superstep::edge
