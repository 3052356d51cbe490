// A text file that grows while long work goes on: what was written by the time of a checkpoint is on the
// disk, and what a stopped program wrote after it is cut away when the work goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace superstep::data {

class AppendedFile {
 public:
  // Opens the file with its first `bytes`; the rest is cut away, 0 begins it anew. Throws Error: io; bad_file
  // where it is shorter.
  AppendedFile(std::filesystem::path path, std::uint64_t bytes);

  void write(std::string_view text);  // throws Error (io)
  // What was written is on the disk; how many bytes the file has. Throws Error (io).
  std::uint64_t flush();

 private:
  std::filesystem::path path_;
  std::ofstream stream_;
  std::uint64_t bytes_;
};

}  // namespace superstep::data
