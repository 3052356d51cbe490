// CBOR (RFC 8949), as much of it as detectors' messages have: definite and indefinite lengths, tags, no
// copies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::edge {

enum class CborKind : std::uint8_t {
  unsigned_integer,
  negative_integer,
  bytes,
  text,
  array,
  map,
  tag,
  simple
};

class CborReader {
 public:
  explicit CborReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // All throw Error (bad_file) where the bytes end early or are of another kind.
  CborKind next_kind() const;
  std::uint64_t unsigned_integer();
  double number();  // whole or not; of 32 or 64 bits where it is not
  std::uint64_t tag();
  std::string_view text();             // of one piece
  std::span<const std::byte> bytes();  // of one piece
  // Elements of an array, or pairs of a map; `indefinite`: until at_break().
  std::uint64_t begin(CborKind kind, bool& indefinite);
  bool at_break();  // and takes it
  void skip();      // the next item, whatever it is, at most 32 levels deep
  bool empty() const { return rest_.empty(); }

 private:
  struct Head {
    CborKind kind;
    int extra;  // 31: indefinite, or a break
    std::uint64_t value;
  };
  Head head();
  Head require(CborKind kind);
  std::span<const std::byte> take(std::uint64_t count);
  void skip_at(int depth);
  [[noreturn]] void refuse(const char* why) const;

  std::span<const std::byte> rest_;
};

class CborWriter {
 public:
  CborWriter& map(std::uint64_t pairs) { return head(CborKind::map, pairs); }
  CborWriter& array(std::uint64_t elements) { return head(CborKind::array, elements); }
  CborWriter& tag(std::uint64_t number) { return head(CborKind::tag, number); }
  CborWriter& unsigned_integer(std::uint64_t value) { return head(CborKind::unsigned_integer, value); }
  CborWriter& number(double value);
  CborWriter& text(std::string_view value);
  CborWriter& bytes(std::span<const std::byte> value);
  std::string take() { return std::move(bytes_); }

 private:
  CborWriter& head(CborKind kind, std::uint64_t value);
  std::string bytes_;
};

}  // namespace superstep::edge
