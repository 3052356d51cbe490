// A file that is read here and there, by several threads, and must not change meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace superstep {

class StableFile {
 public:
  // Never waits: a pipe is refused, as folders and devices are. Throws Error: not_found, bad_file (no regular
  // file), io.
  explicit StableFile(const std::filesystem::path& path);
  ~StableFile();
  StableFile(const StableFile&) = delete;
  StableFile& operator=(const StableFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(opened_.size); }  // when it was opened
  int descriptor() const { return descriptor_; }

  // Fills `to` from the file, thread-safe. Throws Error (io): the disk failed, the file is shorter now.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  // Throws Error (io) where the file was written to, or cut short, since it was opened: what was read of it
  // may be of two versions. To be asked after a few reads, before what they read is used.
  void require_unchanged() const;

 private:
  // When it was written last, in nanoseconds, and how long it is.
  struct Version {
    std::int64_t written = 0, size = 0;
    bool operator==(const Version&) const = default;
  };
  Version version() const;
  [[noreturn]] void refuse_change() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  Version opened_;
};

}  // namespace superstep
