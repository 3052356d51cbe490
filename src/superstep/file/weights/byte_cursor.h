// Reads little-endian numbers one after another out of bytes that may end at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "superstep/base/error.h"

namespace superstep::data {

class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  bool ended() const { return left() == 0; }
  const std::string& where() const { return where_; }

  // Throws Error (bad_file) where fewer are left.
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left())
      refuse("it ends after " + std::to_string(bytes_.size()) + " bytes, in the middle of " + part_);
    const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text(std::uint64_t count) {
    const std::span<const std::byte> taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  // What is read from here on, for errors: "the header".
  void enter(std::string part) { part_ = std::move(part); }
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::bad_file, message, where_);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string where_, part_ = "its header";
};

}  // namespace superstep::data
