// A log of records in preallocated files: whole, after any end of the program, up to what was last committed.
//
// FOLDER/NUMBER.journal: eight bytes that name the format, then records: length and CRC-32 (of kind and
// contents) as u32, little-endian, a kind of one byte, the contents. A length of zero, a sum that does not
// fit and the end of the file end a segment: what a program that was killed had begun to write there was
// never committed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/function_ref.h"

namespace superstep::edge {

struct LogRecord {
  std::uint64_t segment = 0;
  std::uint8_t kind = 0;
  std::span<const std::byte> contents;  // valid while it is looked at
};

class SegmentLog {
 public:
  // Throws Error (io). What is there already is kept and can be read; writing begins with begin_segment().
  SegmentLog(std::filesystem::path folder, std::size_t segment_bytes);
  ~SegmentLog();
  SegmentLog(const SegmentLog&) = delete;
  SegmentLog& operator=(const SegmentLog&) = delete;

  std::vector<std::uint64_t> segments() const;  // ascending
  // All records of a segment, in order; none of one that is gone. Throws Error (io), (bad_file) where the
  // file is no segment. May be called while another thread writes.
  void read(std::uint64_t segment, FunctionRef<void(const LogRecord& record)> each) const;

  // All that follow throw Error (io), also where the disk is full; nothing is then written, and the same call
  // may be made again.
  void begin_segment();
  void append(std::uint8_t kind, std::span<const std::span<const std::byte>> contents);
  void commit();  // what was appended is on the disk

  bool has_room(std::size_t bytes) const { return written_ + bytes + 16 <= size_; }
  bool is_open() const { return file_ >= 0; }       // a segment was begun
  std::uint64_t newest() const { return newest_; }  // 0: there is none
  std::uint64_t oldest() const { return sizes_.empty() ? 0 : sizes_.begin()->first; }
  void drop_before(std::uint64_t segment);
  std::uint64_t bytes() const;  // of all files

 private:
  std::filesystem::path file_of(std::uint64_t segment) const;

  std::filesystem::path folder_;
  std::size_t segment_bytes_, written_ = 0, size_ = 0;  // of the newest
  std::uint64_t newest_ = 0;
  std::map<std::uint64_t, std::uint64_t> sizes_;
  int file_ = -1;
  bool uncommitted_ = false;
};

}  // namespace superstep::edge
