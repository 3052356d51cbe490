// A file that is written at its end and in places, and goes on at a length that it had: what a conversion
// writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace superstep::data {

class OutputFile {
 public:
  // `shown`: how errors name it. Of what is there already it keeps the first `length` bytes; throws Error
  // (bad_file) where there are fewer. Throws Error (io), as every call does.
  OutputFile(const std::filesystem::path& path, std::string shown, std::uint64_t length = 0);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  void write(std::span<const std::byte> bytes);
  // Into what is there, or beyond its end, wherever write() goes on.
  void write_at(std::uint64_t place, std::span<const std::byte> bytes) const;
  std::uint64_t length() const { return length_; }  // of what write() has written
  void sync() const;                                // it is on the disk

 private:
  [[noreturn]] void refuse() const;

  std::string shown_;
  int file_ = -1;
  std::uint64_t length_ = 0;
};

}  // namespace superstep::data
