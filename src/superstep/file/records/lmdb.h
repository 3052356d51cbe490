// Databases of LMDB (symas.com/lmdb, version 1 of its files): keys and values out of a tree of pages, which
// are read where they lie. What a page says is held against the file before it is followed: the library
// itself maps the file and trusts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/stable_file.h"

namespace superstep::data {

// By its first bytes: the file itself, or a folder with a data.mdb in it.
bool is_lmdb(const std::filesystem::path& path);

struct LmdbEntry {
  std::string key;
  std::uint64_t begin = 0, size = 0;  // of the value, in the file
};

class Lmdb {
 public:
  // Reads all keys. Throws Error: bad_file (damaged, cut short), unsupported (databases in one another,
  // several values of a key, numbers of another byte order).
  explicit Lmdb(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  // In the order of the file: by the bytes of the keys.
  const std::vector<LmdbEntry>& entries() const { return entries_; }
  std::vector<std::byte> value(const LmdbEntry& entry) const;  // thread-safe
  void require_unchanged() const { file_.require_unchanged(); }

 private:
  struct Page {
    std::vector<std::byte> bytes;
    std::uint64_t number = 0;
  };
  struct Root;
  Root newest_root() const;
  Page page(std::uint64_t number) const;
  void descend(std::uint64_t number, int levels);
  void add_leaf(const Page& page, std::size_t node);
  [[noreturn]] void refuse(const std::string& what) const;

  StableFile file_;
  std::size_t page_bytes_ = 0;
  std::uint64_t pages_ = 0;       // those of the file
  std::uint64_t pages_seen_ = 0;  // in the tree: more than there are means a circle
  InterruptCheck stop_;
  std::vector<LmdbEntry> entries_;
};

}  // namespace superstep::data
