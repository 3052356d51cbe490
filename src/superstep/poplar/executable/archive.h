// Values as bytes and back: one function says of a type what it consists of, for both ways.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <poplar/exceptions.hpp>
#include <string>
#include <vector>

#include "superstep/base/id.h"

namespace poplar::core {

// Little-endian, as this host has them: executables are read by the program that wrote them, or one like it.
class ArchiveWriter {
 public:
  static constexpr bool reading = false;
  std::string bytes;

  void raw(void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); }
};

// Throws graph_object_load_error where the bytes end too early.
class ArchiveReader {
 public:
  static constexpr bool reading = true;
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}

  void raw(void* data, std::size_t size) {
    need(size);
    std::memcpy(data, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  void need(std::size_t size) const {
    if (size > rest_.size()) throw graph_object_load_error("the executable is damaged: it ends too early");
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

template <class A, class T>
requires std::is_arithmetic_v<T>
void archived(A& archive, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = value ? 1 : 0;
    archive.raw(&byte, 1);
    value = byte != 0;
  } else {
    archive.raw(&value, sizeof value);
  }
}

// Which values an enumeration has is checked with the rest.
template <class A, class T>
requires std::is_enum_v<T>
void archived(A& archive, T& value) { archive.raw(&value, sizeof value); }

template <class A, class Tag>
void archived(A& archive, superstep::Id<Tag>& id) {
  std::uint32_t number = id.valid() ? static_cast<std::uint32_t>(id.index()) : 0xffffffffu;
  archived(archive, number);
  id = superstep::Id<Tag>(number);
}

// A count that as many bytes can still follow.
template <class A>
void archived_count(A& archive, std::uint64_t& count) {
  archived(archive, count);
  if constexpr (A::reading) archive.need(count);
}

template <class A>
void archived(A& archive, std::string& text) {
  std::uint64_t size = text.size();
  archived_count(archive, size);
  if constexpr (A::reading) text.resize(size);
  archive.raw(text.data(), size);
}

template <class A, class T, class U>
void archived(A& archive, std::pair<T, U>& pair) {
  archived(archive, pair.first);
  archived(archive, pair.second);
}

template <class A, class T>
void archived(A& archive, std::vector<T>& list) {
  std::uint64_t size = list.size();
  archived_count(archive, size);
  if constexpr (A::reading) {
    list.clear();
    for (std::uint64_t i = 0; i < size; ++i) archived(archive, list.emplace_back());
  } else {
    for (T& item : list) archived(archive, item);
  }
}

template <class A, class T, class... More>
void archived(A& archive, std::map<std::string, T, More...>& map) {
  std::uint64_t size = map.size();
  archived_count(archive, size);
  if constexpr (A::reading) {
    map.clear();
    for (std::uint64_t i = 0; i < size; ++i) {
      std::string name;
      archived(archive, name);
      archived(archive, map[name]);
    }
  } else {
    for (auto& [name, value] : map) {
      std::string copy = name;
      archived(archive, copy);
      archived(archive, value);
    }
  }
}

template <class A, class T>
void archived(A& archive, std::optional<T>& value) {
  bool there = value.has_value();
  archived(archive, there);
  if constexpr (A::reading) {
    value.reset();
    if (there) value.emplace();
  }
  if (value) archived(archive, *value);
}

// Each in its turn.
template <class A, class... T>
void archived_all(A& archive, T&... values) {
  (archived(archive, values), ...);
}

}  // namespace poplar::core
