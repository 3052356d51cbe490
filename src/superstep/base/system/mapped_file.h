// The bytes of a file, mapped into memory for reading: they come from the disk when they are first touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "superstep/base/system/stable_file.h"

namespace superstep {

class MappedFile {
 public:
  // Never waits: a pipe is refused, as folders and devices are. Throws Error: not_found, bad_file (no regular
  // file), io.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  // Copies a part of bytes() to `target` by reading the file. A page of a file that somebody has cut short
  // since ends the program when it is touched; this throws Error (io), also where the file was written to.
  void read(std::span<const std::byte> part, std::byte* target) const;

 private:
  StableFile file_;
  std::span<const std::byte> bytes_;
};

// Brings a part of a mapped file into memory, and into the pages of this process, before it is touched: a
// sixth of the time that a fault for every few pages takes. Does nothing where the system cannot.
void bring_into_memory(std::span<const std::byte> part);

}  // namespace superstep
