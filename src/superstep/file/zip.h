// Zip archives (stored and deflated entries, ZIP64) through libzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::data {

using ZipEntries = std::map<std::string, std::vector<std::byte>>;

struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;   // unpacked, as the archive says
  std::uint64_t index = 0;  // in the archive, folders counted
};

// An archive in memory or mapped from a file; the bytes must outlive it. An entry that claims more than its
// compressed bytes can hold is refused. Throws Error (bad_file, unsupported), with `where`.
class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, std::string_view where);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::vector<ZipEntry>& entries() const;  // folders left out

  // The bytes of an entry, unpacked as they are asked for.
  class Stream {
   public:
    Stream(const ZipReader& archive, const ZipEntry& entry);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    void read(std::span<std::byte> bytes);  // throws Error: bad_file, interrupted
    void finish();  // throws Error (bad_file) unless this was all, and its checksum is right
    const std::string& where() const;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Entries as they are, without compression; atomically. Throws Error (io).
void write_zip(const std::filesystem::path& path, const ZipEntries& entries);
// The same of files, {name in the archive: file}; `comment` is the archive's.
void write_zip_of_files(const std::filesystem::path& path,
                        const std::map<std::string, std::filesystem::path>& files,
                        const std::string& comment);

}  // namespace superstep::data
