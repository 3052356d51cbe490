// The form of the files: github.com/LMDB/lmdb, libraries/liblmdb/mdb.c (MDB_meta, MDB_page, MDB_node), as
// machines of 64 bits and little-endian numbers write them.
#include "superstep/file/records/lmdb.h"

#include <fmt/format.h>

#include <cstring>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t mark = 0xBEEFC0DE;
constexpr std::uint32_t version = 1;
constexpr std::size_t page_header = 16;
constexpr std::size_t node_header = 8;
constexpr std::size_t least_page = 256, largest_page = 65536;  // 65536 is written as 0
constexpr int deepest_tree = 32;                               // CURSOR_STACK of the library
constexpr std::uint64_t no_page = ~std::uint64_t{0};
// Flags of pages and of nodes.
constexpr unsigned is_branch = 0x01, is_leaf = 0x02, is_overflow = 0x04;
constexpr unsigned big_data = 0x01, sub_data = 0x02, several_data = 0x04;
// Of a database: MDB_DUPSORT and what goes with it.
constexpr unsigned several_values = 0x04 | 0x10 | 0x20 | 0x40;
// Places in a meta page, behind its header.
constexpr std::size_t at_version = 4, at_main = 24 + 48, at_transaction = 24 + 2 * 48 + 8, meta_bytes = 136;

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

fs::path file_of(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none) ? path / "data.mdb" : path;
}

}  // namespace

struct Lmdb::Root {
  std::uint64_t transaction = 0, page = no_page, entries = 0;
  std::uint64_t last_page = 0;
  unsigned flags = 0;
};

bool is_lmdb(const fs::path& path) {
  std::error_code none;
  const fs::path file = file_of(path);
  if (!fs::is_regular_file(file, none)) return false;
  const StableFile stable(file);
  if (stable.size() < page_header + meta_bytes) return false;
  std::vector<std::byte> begin(page_header + at_version);
  stable.read(0, begin);
  return number_at<std::uint32_t>(begin, page_header) == mark;
}

Lmdb::Lmdb(const fs::path& path) : file_(file_of(path)) {
  std::vector<std::byte> begin(page_header + meta_bytes);
  if (file_.size() < begin.size()) refuse("is too short for a database");
  file_.read(0, begin);
  if (number_at<std::uint32_t>(begin, page_header) != mark) refuse("is no database of LMDB");
  if (const auto found = number_at<std::uint32_t>(begin, page_header + at_version); found != version)
    throw Error(ErrorCode::unsupported, fmt::format("is of version {} of LMDB's files", found),
                file_.path().string(), "version 1 is read: copy it with mdb_copy of that version");
  // The size of pages stands where the free pages' database has its own.
  const auto size = number_at<std::uint32_t>(begin, page_header + 24);
  page_bytes_ = size == 0 ? largest_page : size;
  if (page_bytes_ < least_page || page_bytes_ > largest_page || (page_bytes_ & (page_bytes_ - 1)) != 0)
    refuse(fmt::format("says that its pages have {} bytes", size));
  pages_ = file_.size() / page_bytes_;
  const Root root = newest_root();
  if (root.last_page >= pages_)
    refuse(fmt::format("ends within page {} of {}: it was cut short", pages_, root.last_page + 1));
  if ((root.flags & several_values) != 0)
    throw Error(ErrorCode::unsupported, "holds several values of a key", file_.path().string());
  if (root.page != no_page) descend(root.page, 0);
  if (entries_.size() != root.entries)
    refuse(fmt::format("says that it has {} keys, and has {}", root.entries, entries_.size()));
  file_.require_unchanged();
}

// Two places are written in turn; the newer transaction counts.
Lmdb::Root Lmdb::newest_root() const {
  Root newest;
  for (const std::size_t number : {0, 1}) {
    std::vector<std::byte> bytes(page_header + meta_bytes);
    if (file_.size() < number * page_bytes_ + bytes.size()) continue;
    file_.read(number * page_bytes_, bytes);
    const std::span<const std::byte> meta = std::span(bytes).subspan(page_header);
    if (number_at<std::uint32_t>(meta, 0) != mark) continue;
    const Root root{.transaction = number_at<std::uint64_t>(meta, at_transaction),
                    .page = number_at<std::uint64_t>(meta, at_main + 40),
                    .entries = number_at<std::uint64_t>(meta, at_main + 32),
                    .last_page = number_at<std::uint64_t>(meta, at_transaction - 8),
                    .flags = number_at<std::uint16_t>(meta, at_main + 4)};
    if (number == 0 || root.transaction > newest.transaction) newest = root;
  }
  return newest;
}

void Lmdb::refuse(const std::string& what) const {
  throw Error(ErrorCode::bad_file, what, file_.path().string());
}

Lmdb::Page Lmdb::page(std::uint64_t number) const {
  if (number >= pages_) refuse(fmt::format("points to page {} of {}", number, pages_));
  Page page{std::vector<std::byte>(page_bytes_), number};
  file_.read(number * page_bytes_, page.bytes);
  return page;
}

void Lmdb::descend(std::uint64_t number, int levels) {
  if (levels > deepest_tree || ++pages_seen_ > pages_) refuse("has pages that lead back to one another");
  stop_.throw_if_due(file_.path().string());
  const Page here = page(number);
  const auto flags = number_at<std::uint16_t>(here.bytes, 10);
  const std::size_t lower = number_at<std::uint16_t>(here.bytes, 12);
  const bool branch = (flags & is_branch) != 0;
  if (branch == ((flags & is_leaf) != 0)) refuse(fmt::format("page {} is of no known kind", number));
  if (lower < page_header || lower > page_bytes_ || lower % 2 != 0)
    refuse(fmt::format("page {} is damaged", number));
  for (std::size_t at = page_header; at < lower; at += 2) {
    const std::size_t node = number_at<std::uint16_t>(here.bytes, at);
    if (node < lower || node + node_header > page_bytes_) refuse(fmt::format("page {} is damaged", number));
    if (!branch) {
      add_leaf(here, node);
      continue;
    }
    const std::uint64_t low = number_at<std::uint16_t>(here.bytes, node),
                        middle = number_at<std::uint16_t>(here.bytes, node + 2),
                        high = number_at<std::uint16_t>(here.bytes, node + 4);
    descend(low | middle << 16 | high << 32, levels + 1);
  }
}

void Lmdb::add_leaf(const Page& page, std::size_t node) {
  const std::uint64_t size = number_at<std::uint16_t>(page.bytes, node) |
                             static_cast<std::uint64_t>(number_at<std::uint16_t>(page.bytes, node + 2)) << 16;
  const auto flags = number_at<std::uint16_t>(page.bytes, node + 4);
  const std::size_t key_bytes = number_at<std::uint16_t>(page.bytes, node + 6);
  const std::size_t data = node + node_header + key_bytes;
  if ((flags & (sub_data | several_data)) != 0)
    throw Error(ErrorCode::unsupported, "holds databases in one another, or several values of a key",
                file_.path().string(), "copy the one that is meant into a file of its own");
  const bool big = (flags & big_data) != 0;
  if (data + (big ? sizeof(std::uint64_t) : size) > page_bytes_)
    refuse(fmt::format("page {} is damaged", page.number));
  LmdbEntry entry{
      .key = std::string(reinterpret_cast<const char*>(page.bytes.data()) + node + node_header, key_bytes),
      .begin = page.number * page_bytes_ + data,
      .size = size};
  if (big) {
    const auto first = number_at<std::uint64_t>(page.bytes, data);
    if (first >= pages_ || size > (pages_ - first) * page_bytes_ - page_header)
      refuse(fmt::format("points to page {} of {}", first, pages_));
    std::vector<std::byte> header(page_header);
    file_.read(first * page_bytes_, header);
    if ((number_at<std::uint16_t>(header, 10) & is_overflow) == 0)
      refuse(fmt::format("page {} is of another kind", first));
    entry.begin = first * page_bytes_ + page_header;
  }
  entries_.push_back(std::move(entry));
}

std::vector<std::byte> Lmdb::value(const LmdbEntry& entry) const {
  std::vector<std::byte> bytes(entry.size);
  file_.read(entry.begin, bytes);
  return bytes;
}

}  // namespace superstep::data
