// Numbers and texts as bytes, for a parent and its child process: the same machine, the same build.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "superstep/base/error.h"

namespace superstep {

class MessageWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> MessageWriter& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  MessageWriter& put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  template <class T>
  MessageWriter& put(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Nothing is believed: the other side may have written over its own memory before it wrote the message.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) && (!std::is_same_v<T, bool>)T get() {
    T value;
    std::memcpy(&value, piece(sizeof value).data(), sizeof value);
    return value;
  }
  bool flag() { return get<std::uint8_t>() != 0; }
  std::string text() { return std::string(piece(get<std::uint64_t>())); }
  std::vector<std::string> texts() {
    return list<std::string>([this] { return text(); });
  }
  template <class T>
  std::vector<T> numbers() {
    return list<T>([this] { return get<T>(); });
  }

 private:
  template <class T, class Next>
  std::vector<T> list(Next next) {
    std::vector<T> values;
    for (auto count = get<std::uint64_t>(); count > 0; --count) values.push_back(next());
    return values;
  }
  std::string_view piece(std::uint64_t size) {
    if (size > rest_.size()) throw Error(ErrorCode::bad_file, "a message ends too early");
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
};

}  // namespace superstep
