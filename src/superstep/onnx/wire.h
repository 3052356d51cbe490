// The wire format of Protocol Buffers, as far as ONNX files use it: writing.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace superstep::onnx {

// A message under construction. Fields are written in the order of the calls; nested messages are made
// first and added whole.
class Message {
 public:
  Message& integer(int field, std::int64_t value);  // int32, int64, enum
  Message& real(int field, float value);
  Message& text(int field, std::string_view value);  // string, bytes
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& packed_integers(int field, std::span<const std::int64_t> values);
  Message& packed_reals(int field, std::span<const float> values);

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void tag(int field, int wire_type) {
    varint(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(wire_type));
  }

  std::string bytes_;
};

}  // namespace superstep::onnx
