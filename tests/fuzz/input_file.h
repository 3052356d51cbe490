// One input of a fuzzer as a file in memory, for readers that open a path. It has a name of its own: the HDF5
// library does not open what only /proc/self/fd leads to.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

class InputFile {
 public:
  // `ending`: that readers tell formats by.
  InputFile(const unsigned char* data, std::size_t size, const std::string& ending = "") {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code ignored;
    name_ =
        (std::filesystem::is_directory(memory, ignored) ? memory : std::filesystem::temp_directory_path()) /
        ("superstep-fuzz-XXXXXX" + ending);
    const int file = ::mkstemps(name_.data(), static_cast<int>(ending.size()));
    if (file < 0) std::abort();
    while (size > 0) {
      const ssize_t written = ::write(file, data, size);
      if (written <= 0) std::abort();
      data += written, size -= static_cast<std::size_t>(written);
    }
    ::close(file);
  }
  ~InputFile() { ::unlink(name_.c_str()); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::filesystem::path path() const { return name_; }

 private:
  std::string name_;
};
