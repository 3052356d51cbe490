// The bytes of a file, mapped into memory for reading: they come from the disk when they are first touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

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

  // Of bytes of a mapped file: nobody reads them soon. Their pages take up no room until they are touched
  // again, when they come from the file.
  static void set_aside(std::span<const std::byte> part);

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace superstep
