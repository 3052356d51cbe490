#include "superstep/onnx/wire/wire.h"

namespace superstep::onnx {
namespace {

constexpr int varint_type = 0, length_type = 2, fixed32_type = 5;

}  // namespace

void Message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
  bytes_.push_back(static_cast<char>(value));
}

Message& Message::integer(int field, std::int64_t value) {
  tag(field, varint_type);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real(int field, float value) {
  tag(field, fixed32_type);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

Message& Message::text(int field, std::string_view value) {
  tag(field, length_type);
  varint(value.size());
  bytes_.append(value);
  return *this;
}

Message& Message::text_in_place(int field, std::string_view value) {
  tag(field, length_type);
  varint(value.size());
  outside_.push_back({bytes_.size(), value});
  outside_bytes_ += value.size();
  return *this;
}

Message& Message::message(int field, const Message& value) {
  tag(field, length_type);
  varint(value.size());
  for (const Outside& outside : value.outside_)
    outside_.push_back({bytes_.size() + outside.at, outside.content});
  outside_bytes_ += value.outside_bytes_;
  bytes_.append(value.bytes_);
  return *this;
}

std::vector<std::string_view> Message::pieces() const {
  std::vector<std::string_view> pieces;
  std::size_t done = 0;
  for (const Outside& outside : outside_) {
    pieces.push_back(std::string_view(bytes_).substr(done, outside.at - done));
    pieces.push_back(outside.content);
    done = outside.at;
  }
  pieces.push_back(std::string_view(bytes_).substr(done));
  return pieces;
}

std::string Message::bytes() const {
  std::string whole;
  whole.reserve(size());
  for (const std::string_view piece : pieces()) whole.append(piece);
  return whole;
}

Message& Message::packed_integers(int field, std::span<const std::int64_t> values) {
  Message inner;
  for (std::int64_t value : values) inner.varint(static_cast<std::uint64_t>(value));
  return message(field, inner);
}

Message& Message::packed_reals(int field, std::span<const float> values) {
  return text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace superstep::onnx
