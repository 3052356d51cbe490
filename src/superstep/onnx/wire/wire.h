// The wire format of Protocol Buffers, as far as ONNX files use it: writing.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::onnx {

// A message under construction. Fields are written in the order of the calls; nested messages are made
// first and added whole. Large contents may stay where they are until the message is written.
class Message {
 public:
  Message& integer(int field, std::int64_t value);  // int32, int64, enum
  Message& real(int field, float value);
  Message& text(int field, std::string_view value);  // string, bytes
  // As text(), of memory that stays as it is for as long as the message is used.
  Message& text_in_place(int field, std::string_view value);
  Message& message(int field, const Message& value);
  Message& packed_integers(int field, std::span<const std::int64_t> values);
  Message& packed_reals(int field, std::span<const float> values);

  std::size_t size() const { return bytes_.size() + outside_bytes_; }
  // The whole message, one piece after another; they lie in this object and in what was left in place.
  std::vector<std::string_view> pieces() const;
  std::string bytes() const;

 private:
  struct Outside {
    std::size_t at;  // before this byte of bytes_
    std::string_view content;
  };

  void varint(std::uint64_t value);
  void tag(int field, int wire_type) {
    varint(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(wire_type));
  }

  std::string bytes_;
  std::vector<Outside> outside_;
  std::size_t outside_bytes_ = 0;
};

}  // namespace superstep::onnx
