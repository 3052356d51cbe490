#include "superstep/edge/stream/cbor.h"

#include <bit>

namespace superstep::edge {
namespace {

constexpr int indefinite_length = 31, deepest = 32;

}  // namespace

void CborReader::refuse(const char* why) const { throw Error(ErrorCode::bad_file, why, "CBOR"); }

std::span<const std::byte> CborReader::take(std::uint64_t count) {
  if (count > rest_.size()) refuse("the message ends too early");
  const std::span<const std::byte> taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

CborKind CborReader::next_kind() const {
  if (rest_.empty()) refuse("the message ends too early");
  return static_cast<CborKind>(static_cast<unsigned>(rest_[0]) >> 5);
}

CborReader::Head CborReader::head() {
  const auto first = static_cast<unsigned>(take(1)[0]);
  Head result{
      .kind = static_cast<CborKind>(first >> 5), .extra = static_cast<int>(first & 31), .value = first & 31};
  if (result.extra < 24 || result.extra == indefinite_length) return result;
  if (result.extra > 27) refuse("a length of no known form");
  result.value = 0;
  for (const std::byte byte : take(std::uint64_t{1} << (result.extra - 24)))
    result.value = result.value << 8 | static_cast<std::uint64_t>(byte);
  return result;
}

CborReader::Head CborReader::require(CborKind kind) {
  if (next_kind() != kind) refuse("an item of another kind was expected");
  return head();
}

std::uint64_t CborReader::unsigned_integer() {
  const Head item = require(CborKind::unsigned_integer);
  if (item.extra == indefinite_length) refuse("a number without a value");
  return item.value;
}

double CborReader::number() {
  const Head item = head();
  constexpr int of_32_bits = 26, of_64_bits = 27;
  if (item.kind == CborKind::unsigned_integer && item.extra != indefinite_length)
    return static_cast<double>(item.value);
  if (item.kind == CborKind::negative_integer && item.extra != indefinite_length)
    return -1 - static_cast<double>(item.value);
  if (item.kind == CborKind::simple && item.extra == of_32_bits)
    return std::bit_cast<float>(static_cast<std::uint32_t>(item.value));
  if (item.kind != CborKind::simple || item.extra != of_64_bits) refuse("a number was expected");
  return std::bit_cast<double>(item.value);
}

std::uint64_t CborReader::tag() {
  const Head item = require(CborKind::tag);
  if (item.extra == indefinite_length) refuse("a tag without a number");
  return item.value;
}

std::span<const std::byte> CborReader::bytes() {
  const Head item = require(CborKind::bytes);
  if (item.extra == indefinite_length) refuse("bytes in pieces are not read");
  return take(item.value);
}

std::string_view CborReader::text() {
  const Head item = require(CborKind::text);
  if (item.extra == indefinite_length) refuse("a text in pieces is not read");
  const std::span<const std::byte> taken = take(item.value);
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

std::uint64_t CborReader::begin(CborKind kind, bool& indefinite) {
  const Head item = require(kind);
  indefinite = item.extra == indefinite_length;
  return indefinite ? 0 : item.value;
}

bool CborReader::at_break() {
  if (next_kind() != CborKind::simple || static_cast<unsigned>(rest_[0]) != 0xff) return false;
  take(1);
  return true;
}

void CborReader::skip() { skip_at(0); }

void CborReader::skip_at(int depth) {
  if (depth > deepest) refuse("is nested too deep");
  const Head item = head();
  const bool indefinite = item.extra == indefinite_length;
  switch (item.kind) {
    case CborKind::unsigned_integer:
    case CborKind::negative_integer:
      if (indefinite) refuse("a number without a value");
      return;
    case CborKind::simple:
      if (indefinite) refuse("an end of nothing");
      return;
    case CborKind::tag: return skip_at(depth + 1);
    case CborKind::bytes:
    case CborKind::text:
      if (!indefinite) {
        take(item.value);
        return;
      }
      while (!at_break()) skip_at(depth + 1);
      return;
    case CborKind::array:
    case CborKind::map: {
      // Each item takes a byte at least: a count that the message cannot hold ends with its bytes.
      if (indefinite) {
        while (!at_break()) skip_at(depth + 1);
        return;
      }
      if (item.value > rest_.size()) refuse("more items than bytes");
      const std::uint64_t items = item.kind == CborKind::map ? 2 * item.value : item.value;
      for (std::uint64_t i = 0; i < items; ++i) skip_at(depth + 1);
      return;
    }
  }
}

CborWriter& CborWriter::head(CborKind kind, std::uint64_t value) {
  const auto type = static_cast<unsigned>(kind) << 5;
  if (value < 24) {
    bytes_ += static_cast<char>(type | value);
    return *this;
  }
  const int width = value < 0x100            ? 0
                    : value < 0x10000        ? 1
                    : value < 0x100000000ULL ? 2
                                             : 3;  // 2^width bytes
  bytes_ += static_cast<char>(type | static_cast<unsigned>(24 + width));
  for (int byte = (1 << width) - 1; byte >= 0; --byte)
    bytes_ += static_cast<char>(value >> (8 * byte) & 0xff);
  return *this;
}

CborWriter& CborWriter::number(double value) {
  bytes_ += '\xfb';
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int byte = 7; byte >= 0; --byte) bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
  return *this;
}

CborWriter& CborWriter::text(std::string_view value) {
  head(CborKind::text, value.size());
  bytes_ += value;
  return *this;
}

CborWriter& CborWriter::bytes(std::span<const std::byte> value) {
  head(CborKind::bytes, value.size());
  bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
  return *this;
}

}  // namespace superstep::edge
