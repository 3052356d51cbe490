#include "superstep/file/records/wire_format.h"

#include <bit>
#include <span>

#include "superstep/file/records/crc32c.h"

namespace superstep::data {
namespace {

enum Kind : std::uint64_t { varint = 0, eight_bytes = 1, length_delimited = 2, four_bytes = 5 };

std::string begin_field(std::uint64_t number, Kind kind) {
  std::string field;
  put_varint(field, number << 3 | kind);
  return field;
}

std::string with_sum(std::string bytes) {
  const std::uint32_t sum = masked_crc32c(std::as_bytes(std::span(bytes)));
  return bytes + little_endian(sum);
}

}  // namespace

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

std::string bytes_field(std::uint64_t number, std::string_view bytes) {
  std::string field = begin_field(number, length_delimited);
  put_varint(field, bytes.size());
  return field.append(bytes);
}

std::string varint_field(std::uint64_t number, std::uint64_t value) {
  std::string field = begin_field(number, varint);
  put_varint(field, value);
  return field;
}

std::string float_field(std::uint64_t number, float value) {
  return begin_field(number, four_bytes) + little_endian(std::bit_cast<std::uint32_t>(value));
}

std::string double_field(std::uint64_t number, double value) {
  return begin_field(number, eight_bytes) + little_endian(std::bit_cast<std::uint64_t>(value));
}

std::string tf_record(std::string_view message) {
  return with_sum(little_endian(std::uint64_t{message.size()})) + with_sum(std::string(message));
}

}  // namespace superstep::data
