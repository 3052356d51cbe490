// Protocol buffers as they are written, and the frames of TFRecord around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace superstep::data {

void put_varint(std::string& to, std::uint64_t value);

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

// Fields: their number and kind, then what they hold.
std::string bytes_field(std::uint64_t number, std::string_view bytes);  // messages, too
std::string varint_field(std::uint64_t number, std::uint64_t value);
std::string float_field(std::uint64_t number, float value);
std::string double_field(std::uint64_t number, double value);

// A record of a TFRecord file: its length and itself, each with its sum.
std::string tf_record(std::string_view message);

}  // namespace superstep::data
