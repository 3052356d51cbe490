#include "superstep/edge/stream/pack.h"

#include <fmt/format.h>
#include <lz4.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/edge/stream/bit_rows.h"

namespace superstep::edge {
namespace {

// Big-endian.
void add_number(std::string& to, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xff);
}

std::string compressed(std::span<const std::byte> block) {
  std::string to(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(block.size()))), '\0');
  const int size = LZ4_compress_default(reinterpret_cast<const char*>(block.data()), to.data(),
                                        static_cast<int>(block.size()), static_cast<int>(to.size()));
  to.resize(static_cast<std::size_t>(std::max(size, 0)));
  return to;
}

void add_block(std::string& to, std::string_view block) {
  add_number(to, block.size(), 4);
  to += block;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void pack_lz4(std::span<const std::byte> elements, std::size_t block, std::string& to) {
  for (std::size_t at = 0; at < elements.size(); at += block) {
    const auto part = elements.subspan(at, std::min(block, elements.size() - at));
    const std::string packed = compressed(part);
    add_block(to, packed.size() < part.size() ? packed : text_of(part));
  }
}

void pack_bslz4(std::span<const std::byte> elements, std::size_t block, std::size_t element_bytes,
                std::string& to) {
  const std::size_t eight = 8 * element_bytes, whole = elements.size() / eight * eight;
  std::vector<std::byte> rows, planes;
  for (std::size_t at = 0; at < whole; at += block) {
    const auto part = elements.subspan(at, std::min(block, whole - at));
    rows.resize(part.size());
    elements_to_rows(part, element_bytes, rows, planes);
    add_block(to, compressed(rows));
  }
  to += text_of(elements.subspan(whole));
}

}  // namespace

std::string pack(std::string_view method, std::size_t element_bytes, std::span<const std::byte> elements) {
  constexpr std::size_t block = 8192;  // as the filter of bitshuffle has it
  std::string to;
  add_number(to, elements.size(), 8);
  add_number(to, block, 4);
  if (method == "lz4")
    pack_lz4(elements, block, to);
  else if (method == "bslz4")
    pack_bslz4(elements, block, element_bytes, to);
  else
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no compression '{}'", method),
                "--compress", "there are none, lz4 and bslz4");
  return to;
}

}  // namespace superstep::edge
