#include "superstep/onnx/wire/wire_reader.h"

#include <fmt/format.h>

#include <cstring>

namespace superstep::onnx {

void FieldReader::damaged(std::string_view what) const {
  throw Error(ErrorCode::bad_file, fmt::format("{} (field {}) {}", message_, field_, what), {},
              "the file is damaged, cut off, or not an ONNX file");
}

std::uint64_t FieldReader::take_varint(Bytes& from) const {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) damaged("ends inside a number");
    const auto byte = static_cast<std::uint64_t>(from.front());
    from = from.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  damaged("has a number of more than 64 bits");
}

Bytes FieldReader::take(std::uint64_t size) {
  if (size > rest_.size()) damaged(fmt::format("claims {} bytes where {} are left", size, rest_.size()));
  const Bytes taken = rest_.first(static_cast<std::size_t>(size));
  rest_ = rest_.subspan(static_cast<std::size_t>(size));
  return taken;
}

bool FieldReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t tag = take_varint(rest_);
  // Field numbers have 29 bits.
  if (tag >> 3 == 0 || tag >> 32 != 0) damaged("is followed by a field number that cannot be");
  field_ = static_cast<int>(tag >> 3);
  wire_type_ = static_cast<int>(tag & 7);
  take_value();
  return true;
}

void FieldReader::take_value() {
  switch (wire_type_) {
    case varint: number_ = take_varint(rest_); return;
    case fixed64: value_ = take(8); return;
    case fixed32: value_ = take(4); return;
    case length: value_ = take(take_varint(rest_)); return;
    default: damaged("is of a wire type that ONNX does not use");
  }
}

std::int64_t FieldReader::integer() const {
  if (wire_type_ != varint) damaged("should hold an integer");
  return static_cast<std::int64_t>(number_);
}

float FieldReader::real() const {
  if (wire_type_ != fixed32) damaged("should hold a 32-bit number");
  float value;
  std::memcpy(&value, value_.data(), sizeof value);
  return value;
}

Bytes FieldReader::bytes() const {
  if (wire_type_ != length) damaged("should hold text, numbers or a message");
  return value_;
}

std::string_view FieldReader::text() const {
  const Bytes view = bytes();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

void FieldReader::append(std::vector<std::int64_t>& values) const {
  each_integer([&](std::int64_t value) { values.push_back(value); });
}

void FieldReader::append(std::vector<float>& values) const {
  each_fixed<float>([&](float value) { values.push_back(value); });
}

}  // namespace superstep::onnx
