// The wire format of Protocol Buffers: reading, from bytes that may be hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::onnx {

using Bytes = std::span<const std::byte>;

// Walks over the fields of one message. Nothing is copied: texts and nested messages are views of the
// bytes. Every length is checked against what is left, so no view reaches beyond the message. All errors
// are Error (bad_file) naming the message.
class FieldReader {
 public:
  // `message` is the message's name in the format, for errors.
  FieldReader(Bytes bytes, std::string_view message) : rest_(bytes), message_(message) {}

  bool next();  // to the next field; false at the end
  int field() const { return field_; }

  // The field's value; an error when the wire type does not fit.
  std::int64_t integer() const;
  float real() const;
  Bytes bytes() const;
  std::string_view text() const;

  // Repeated numbers, packed into one field or one a field.
  void append(std::vector<std::int64_t>& values) const;
  void append(std::vector<float>& values) const;

  // Calls each(value) for the numbers of a packed or single field of varints, or of fixed width (T is float,
  // double).
  template <class Each>
  void each_integer(Each&& each) const;
  template <class T, class Each>
  void each_fixed(Each&& each) const;

  [[noreturn]] void damaged(std::string_view what) const;

 private:
  enum WireType { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

  std::uint64_t take_varint(Bytes& from) const;
  void take_value();
  Bytes take(std::uint64_t size);

  Bytes rest_, value_;
  std::string_view message_;
  std::uint64_t number_ = 0;
  int field_ = 0, wire_type_ = 0;
};

template <class Each>
void FieldReader::each_integer(Each&& each) const {
  if (wire_type_ == varint) return each(static_cast<std::int64_t>(number_));
  Bytes packed = bytes();
  while (!packed.empty()) each(static_cast<std::int64_t>(take_varint(packed)));
}

template <class T, class Each>
void FieldReader::each_fixed(Each&& each) const {
  constexpr int single = sizeof(T) == 4 ? fixed32 : fixed64;
  if (wire_type_ != single && wire_type_ != length)
    damaged("holds another kind of number than the format has");
  if (value_.size() % sizeof(T) != 0) damaged("holds packed numbers that are cut off");
  for (std::size_t at = 0; at < value_.size(); at += sizeof(T)) {
    T number;
    __builtin_memcpy(&number, value_.data() + at, sizeof(T));
    each(number);
  }
}

}  // namespace superstep::onnx
