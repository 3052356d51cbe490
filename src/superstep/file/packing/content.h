// What a file holds: its bytes as they are, or, of one packed by gzip or zstd, those that it unpacks to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "superstep/base/system/stable_file.h"

namespace superstep::data {

// Any part is read, by several threads. Of a packed file the parts that were unpacked last are kept; others
// are unpacked again from the nearest place before them that was kept while it was first gone through: of
// gzip every few megabytes, of zstd where a frame begins, which may be the beginning alone. So it is best
// read in its order, or nearly.
class Content {
 public:
  // Throws what StableFile does; (unsupported) where the program was built without zstd.
  explicit Content(const std::filesystem::path& path);
  ~Content();

  const std::filesystem::path& path() const { return file_.path(); }
  bool is_packed() const { return packed_ != nullptr; }
  // Whether it is packed, and what it unpacks to is more than is kept: half of that, so that several such
  // files are read beside one another. Unpacks it all to know.
  bool is_ordered() const;
  // Whether `count` bytes are there from `offset` on. A packed file is unpacked up to there to know it.
  bool has(std::uint64_t offset, std::uint64_t count) const;
  // Where it ends, as has(). Throws Error (bad_file) where what is packed is damaged.
  std::uint64_t size() const;
  // All of `to` must be there. Throws Error (bad_file, io) naming the file.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  // The same in one call into two places, one behind the other.
  void read(std::uint64_t offset, std::span<std::byte> first, std::span<std::byte> second) const;
  void require_unchanged() const { file_.require_unchanged(); }

  // Of the file itself, to say how far reading is: how long it is, and how much was read up to `offset`.
  double stored_bytes() const { return static_cast<double>(file_.size()); }
  double stored_position(std::uint64_t offset) const;

 private:
  class Packed;
  StableFile file_;
  std::unique_ptr<Packed> packed_;
};

// The first bytes that a file holds, unpacked, `count` or as many as there are; none where it cannot be read.
std::string first_content(const std::filesystem::path& path, std::size_t count);

// Its name without what it is packed by: "a.csv" of "a.csv.gz", "b.tar" of "b.tgz". Others stay as they are.
std::filesystem::path unpacked_name(const std::filesystem::path& path);

// As is_text() (file/form.h), of what it holds.
bool holds_text(const std::filesystem::path& path, std::initializer_list<std::string_view> endings);

}  // namespace superstep::data
