#include "superstep/onnx/wire.h"

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

Message& Message::packed_integers(int field, std::span<const std::int64_t> values) {
  Message inner;
  for (std::int64_t value : values) inner.varint(static_cast<std::uint64_t>(value));
  return message(field, inner);
}

Message& Message::packed_reals(int field, std::span<const float> values) {
  return text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace superstep::onnx
