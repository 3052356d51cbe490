#include "superstep/file/zip_places.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace superstep::data {
namespace {

// Fields and signatures: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3.
constexpr std::uint64_t end_mark = 0x06054b50, end64_mark = 0x06064b50, end64_place_mark = 0x07064b50,
                        entry_mark = 0x02014b50, header_mark = 0x04034b50;
constexpr std::size_t end_bytes = 22, longest_comment = 65535, end64_place_bytes = 20, end64_bytes = 56,
                      entry_bytes = 46, header_bytes = 30;
constexpr std::uint64_t in_extra_field = 0xffffffff;

// Little-endian numbers; what is not there is 0.
class Bytes {
 public:
  Bytes(const StableFile& file, std::uint64_t begin, std::uint64_t size) {
    if (begin > file.size() || size > file.size() - begin) return;
    bytes_.resize(size);
    file.read(begin, bytes_);
  }
  std::size_t size() const { return bytes_.size(); }
  std::uint64_t number(std::size_t at, std::size_t width) const {
    if (at + width > bytes_.size()) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at + i]);
    return value;
  }
  std::string text(std::size_t at, std::size_t size) const {
    if (at + size > bytes_.size()) return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
  }

 private:
  std::vector<std::byte> bytes_;
};

struct Directory {
  std::uint64_t begin = 0, size = 0;
};

std::optional<Directory> large_directory(const StableFile& file, std::uint64_t end) {
  if (end < end64_place_bytes) return {};
  const Bytes place(file, end - end64_place_bytes, end64_place_bytes);
  if (place.number(0, 4) != end64_place_mark) return {};
  const Bytes record(file, place.number(8, 8), end64_bytes);
  if (record.number(0, 4) != end64_mark) return {};
  return Directory{record.number(48, 8), record.number(40, 8)};
}

std::optional<Directory> directory_of(const StableFile& file) {
  const std::uint64_t tail = std::min<std::uint64_t>(file.size(), end_bytes + longest_comment);
  const Bytes bytes(file, file.size() - tail, tail);
  for (std::size_t at = bytes.size() < end_bytes ? 0 : bytes.size() - end_bytes + 1; at-- > 0;) {
    if (bytes.number(at, 4) != end_mark) continue;
    if (const auto large = large_directory(file, file.size() - tail + at)) return large;
    return Directory{bytes.number(at + 16, 4), bytes.number(at + 12, 4)};
  }
  return {};
}

// What an entry of the directory says of itself; numbers that do not fit are in an extra field, in this
// order.
struct Described {
  std::uint64_t size, packed, header;
};

Described described(const Bytes& directory, std::size_t at, std::size_t name, std::size_t extra) {
  Described found{directory.number(at + 24, 4), directory.number(at + 20, 4), directory.number(at + 42, 4)};
  std::size_t field = at + entry_bytes + name;
  const std::size_t end = field + extra;
  while (field + 4 <= end && directory.number(field, 2) != 1) field += 4 + directory.number(field + 2, 2);
  field += 4;
  for (std::uint64_t* number : {&found.size, &found.packed, &found.header})
    if (*number == in_extra_field && field + 8 <= end) {
      *number = directory.number(field, 8);
      field += 8;
    }
  return found;
}

std::optional<StoredEntry> place_of(const StableFile& file, const Described& entry) {
  const Bytes header(file, entry.header, header_bytes);
  if (header.number(0, 4) != header_mark) return {};
  const std::uint64_t begin = entry.header + header_bytes + header.number(26, 2) + header.number(28, 2);
  if (begin > file.size() || entry.size > file.size() - begin) return {};
  return StoredEntry{begin, entry.size};
}

}  // namespace

std::map<std::string, StoredEntry> stored_entries(const StableFile& file) {
  std::map<std::string, StoredEntry> entries;
  const std::optional<Directory> where = directory_of(file);
  if (!where) return entries;
  const Bytes directory(file, where->begin, where->size);
  for (std::size_t at = 0; at + entry_bytes <= directory.size() && directory.number(at, 4) == entry_mark;) {
    const std::size_t name = directory.number(at + 28, 2), extra = directory.number(at + 30, 2);
    const Described entry = described(directory, at, name, extra);
    const bool encrypted = (directory.number(at + 8, 2) & 1) != 0;
    const bool stored = directory.number(at + 10, 2) == 0 && entry.packed == entry.size && !encrypted;
    if (const auto place = stored ? place_of(file, entry) : std::nullopt)
      entries[directory.text(at + entry_bytes, name)] = *place;
    at += entry_bytes + name + extra + directory.number(at + 32, 2);
  }
  return entries;
}

}  // namespace superstep::data
