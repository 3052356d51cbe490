// Structures of Thrift's compact protocol, as the headers of Parquet are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "superstep/base/error.h"

namespace superstep::data::columns {

// One after another out of bytes that may end at any place, or be anything. Throws Error (bad_file) naming
// `where`.
class ThriftReader {
 public:
  ThriftReader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  enum class Type : std::uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    byte = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    number = 7,
    text = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12
  };

  // The fields of a structure: `take` reads the value of field `id`, and says so; what it does not know is
  // passed by.
  using TakeField = std::function<bool(int id, Type type)>;
  void structure(const TakeField& take);
  // What a field holds. Of another type than the field's is an error.
  std::int64_t integer(Type type);
  bool boolean(Type type);
  std::string text(Type type);
  // `take` reads one element of this type.
  void list(Type type, const std::function<void(Type element)>& take);

  std::size_t at() const { return at_; }

 private:
  [[noreturn]] void refuse(const char* message) const;
  std::uint8_t byte();
  std::uint64_t varint();
  void skip(Type type);
  void skip_map();
  struct Elements {
    Type type = Type::stop;
    std::uint64_t count = 0;
  };
  Elements elements();

  std::span<const std::byte> bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// That the bytes end too early, which whoever reads a part of a file answers with a larger part.
class ThriftEnds : public Error {
 public:
  using Error::Error;
};

}  // namespace superstep::data::columns
