// Structures of Thrift's compact protocol, written: what thrift.h reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace superstep::data::columns {

// A structure, field by field, by ascending numbers; end() closes it. Structures in others are strings of
// their own.
class ThriftWriter {
 public:
  ThriftWriter& integer(int id, std::int64_t value, bool wide = false) {
    head(id, wide ? 6 : 5);
    varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
    return *this;
  }
  ThriftWriter& byte(int id, std::int8_t value) {
    head(id, 3);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  ThriftWriter& boolean(int id, bool value) {
    head(id, value ? 1 : 2);
    return *this;
  }
  ThriftWriter& text(int id, std::string_view value) {
    head(id, 8);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ThriftWriter& structure(int id, const std::string& ended) {
    head(id, 12);
    bytes_ += ended;
    return *this;
  }
  // `elements`: one behind the other, as element_*() give them.
  ThriftWriter& structures(int id, std::size_t count, const std::string& elements) {
    return list(id, 12, count, elements);
  }
  ThriftWriter& list(int id, int type, std::size_t count, const std::string& elements) {
    head(id, 9);
    constexpr std::size_t most_in_head = 15;
    bytes_ +=
        static_cast<char>((count < most_in_head ? count : most_in_head) << 4 | static_cast<unsigned>(type));
    if (count >= most_in_head) varint(count);
    bytes_ += elements;
    return *this;
  }
  std::string end() {
    bytes_ += '\0';
    return std::move(bytes_);
  }

  static std::string element_text(std::string_view value) {
    ThriftWriter writer;
    writer.varint(value.size());
    return writer.bytes_ + std::string(value);
  }
  static std::string element_integer(std::int64_t value) {
    ThriftWriter writer;
    writer.varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
    return writer.bytes_;
  }

 private:
  void head(int id, int type) {
    bytes_ += static_cast<char>((id - last_) << 4 | type);  // no field is 16 or more behind the last one
    last_ = id;
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
  int last_ = 0;
};

}  // namespace superstep::data::columns
