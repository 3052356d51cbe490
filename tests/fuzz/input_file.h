// One input of a fuzzer as a file in memory, for readers that open a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>

class InputFile {
 public:
  InputFile(const unsigned char* data, std::size_t size) : file_(memfd_create("fuzz", 0)) {
    while (size > 0) {
      const ssize_t written = write(file_, data, size);
      if (written <= 0) break;
      data += written, size -= static_cast<std::size_t>(written);
    }
  }
  ~InputFile() { close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};
