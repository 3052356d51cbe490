// github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.
#include "superstep/file/columns/thrift.h"

#include "superstep/file/varint.h"

namespace superstep::data::columns {
namespace {

constexpr int deepest = 32;  // structures in one another; Parquet's have six

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace

void ThriftReader::refuse(const char* message) const { throw Error(ErrorCode::bad_file, message, where_); }

std::uint8_t ThriftReader::byte() {
  if (at_ == bytes_.size()) throw ThriftEnds(ErrorCode::bad_file, "its header is cut short", where_);
  return std::to_integer<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  if (const auto value = read_varint([&] { return byte(); })) return *value;
  refuse("its header has a number that does not end");
}

void ThriftReader::structure(const TakeField& take) {
  if (++depth_ > deepest) refuse("its header is nested too deep");
  int id = 0;
  for (;;) {
    const std::uint8_t head = byte();
    const auto type = static_cast<Type>(head & 0xf);
    if (type == Type::stop) break;
    const int step = head >> 4;
    const auto whole = step == 0 ? unzigzag(varint()) : id + step;
    if (whole < 0 || whole > 0x7fff) refuse("its header has a field without a number");
    id = static_cast<int>(whole);
    if (!take(id, type)) skip(type);
  }
  --depth_;
}

std::int64_t ThriftReader::integer(Type type) {
  if (type == Type::byte) return static_cast<std::int8_t>(byte());
  if (type != Type::i16 && type != Type::i32 && type != Type::i64)
    refuse("its header has something else where a number should be");
  return unzigzag(varint());
}

bool ThriftReader::boolean(Type type) {
  if (type != Type::yes && type != Type::no)
    refuse("its header has something else where yes or no should be");
  return type == Type::yes;
}

std::string ThriftReader::text(Type type) {
  if (type != Type::text) refuse("its header has something else where a text should be");
  const std::uint64_t size = varint();
  if (size > bytes_.size() - at_) throw ThriftEnds(ErrorCode::bad_file, "its header is cut short", where_);
  std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<std::size_t>(size));
  at_ += static_cast<std::size_t>(size);
  return text;
}

// An element takes a byte at least, so that a count is never more than the bytes that are left.
ThriftReader::Elements ThriftReader::elements() {
  const std::uint8_t head = byte();
  Elements found{static_cast<Type>(head & 0xf), static_cast<std::uint64_t>(head >> 4)};
  if (found.count == 15) found.count = varint();
  if (found.count > bytes_.size() - at_)
    throw ThriftEnds(ErrorCode::bad_file, "its header is cut short", where_);
  return found;
}

void ThriftReader::list(Type type, const std::function<void(Type element)>& take) {
  if (type != Type::list) refuse("its header has something else where a list should be");
  const Elements found = elements();
  for (std::uint64_t i = 0; i < found.count; ++i) {
    const std::size_t before = at_;
    take(found.type);
    if (at_ == before) refuse("its header has a list of nothing");
  }
}

void ThriftReader::skip(Type type) {
  if (++depth_ > deepest) refuse("its header is nested too deep");
  switch (type) {
    case Type::yes:
    case Type::no: break;
    case Type::byte: byte(); break;
    case Type::i16:
    case Type::i32:
    case Type::i64: varint(); break;
    case Type::number:
      for (int i = 0; i < 8; ++i) byte();
      break;
    case Type::text: text(type); break;
    case Type::list:
    case Type::set: {
      const Elements found = elements();
      const bool is_bool = found.type == Type::yes || found.type == Type::no;
      for (std::uint64_t i = 0; i < found.count; ++i) is_bool ? static_cast<void>(byte()) : skip(found.type);
      break;
    }
    case Type::map: skip_map(); break;
    case Type::structure: structure([](int, Type) { return false; }); break;
    default: refuse("its header has a field of no type");
  }
  --depth_;
}

void ThriftReader::skip_map() {
  const std::uint64_t count = varint();
  if (count == 0) return;
  const std::uint8_t types = byte();
  if (count > bytes_.size() - at_) throw ThriftEnds(ErrorCode::bad_file, "its header is cut short", where_);
  const auto skip_one = [&](Type type) {
    type == Type::yes || type == Type::no ? static_cast<void>(byte()) : skip(type);
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    skip_one(static_cast<Type>(types >> 4));
    skip_one(static_cast<Type>(types & 0xf));
  }
}

}  // namespace superstep::data::columns
