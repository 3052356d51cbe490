// How much a command wrote.
#pragma once

#include <filesystem>

namespace superstep::cli {

// Bytes of a file, or of all files of a folder; 0 of a pipe or a device, which keep nothing.
inline double bytes_at(const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) return static_cast<double>(std::filesystem::file_size(path));
  if (!std::filesystem::is_directory(path)) return 0;
  double sum = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) sum += static_cast<double>(entry.file_size());
  return sum;
}

}  // namespace superstep::cli
