// The bytes of a file, mapped into memory for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace superstep::data {

class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws Error (not_found, bad_file, io)
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace superstep::data
