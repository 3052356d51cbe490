// FlatBuffers, as far as the messages of Arrow need them: tables with fields by number, texts, lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "superstep/base/error.h"

namespace superstep::data::columns {

// A table somewhere in bytes that may be anything: what lies beyond them is an Error (bad_file) naming
// `where`. Positions count from the beginning of the bytes (flatbuffers.dev, "FlatBuffer Internals").
class FlatTable {
 public:
  // The table that a buffer begins with.
  static FlatTable root(std::span<const std::byte> bytes, const std::string& where) {
    const FlatTable whole(bytes, 0, where);
    return {bytes, whole.target(0), where};
  }

  template <class T>
  T number(int field, T otherwise) const {
    const std::size_t at = place(field);
    return at == 0 ? otherwise : read<T>(at);
  }
  std::optional<FlatTable> table(int field) const {
    const std::size_t at = place(field);
    if (at == 0) return std::nullopt;
    return FlatTable(bytes_, target(at), *where_);
  }
  std::string_view text(int field) const {
    const List list = elements(field, 1);
    return {reinterpret_cast<const char*>(bytes_.data()) + list.begin, list.count};
  }

  struct List {
    std::size_t begin = 0, count = 0;
  };
  // Where the elements of a list lie, each of so many bytes; no such field: none.
  List elements(int field, std::size_t width) const {
    const std::size_t at = place(field);
    if (at == 0) return {};
    const std::size_t list = target(at);
    const auto count = static_cast<std::size_t>(read<std::uint32_t>(list));
    if (count > (bytes_.size() - list - 4) / width) refuse();
    return {list + 4, count};
  }
  // Of a list of tables.
  FlatTable element(const List& list, std::size_t i) const {
    return {bytes_, target(list.begin + 4 * i), *where_};
  }

  template <class T>
  T read(std::size_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) refuse();
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::bad_file, "is damaged: a message in it is not one of Arrow's", *where_);
  }

 private:
  FlatTable(std::span<const std::byte> bytes, std::size_t at, const std::string& where)
      : bytes_(bytes), at_(at), where_(&where) {}

  std::size_t target(std::size_t at) const {
    const std::size_t to = at + read<std::uint32_t>(at);
    if (to >= bytes_.size()) refuse();
    return to;
  }
  // Of a field; 0: the table does not have it.
  std::size_t place(int field) const {
    const std::int64_t table = static_cast<std::int64_t>(at_) - read<std::int32_t>(at_);
    if (table < 0) refuse();
    const auto vtable = static_cast<std::size_t>(table);
    const std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
    if (entry + 2 > read<std::uint16_t>(vtable)) return 0;
    const auto offset = read<std::uint16_t>(vtable + entry);
    return offset == 0 ? 0 : at_ + offset;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_;
  const std::string* where_;
};

}  // namespace superstep::data::columns
