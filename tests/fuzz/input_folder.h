// One input of a fuzzer as a folder of files, for readers that open a folder or write beside what they read.
// The input's pieces, parted by lines of "%%", become the files of the given names in turn; an empty piece is
// a file that is not there, and what is left over is dropped.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

class InputFolder {
 public:
  InputFolder(const unsigned char* data, std::size_t size, std::initializer_list<const char*> names) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    for (const char* name : names) {
      constexpr std::string_view parting = "\n%%\n";
      const std::size_t end = rest.find(parting);
      write(name, rest.substr(0, end));
      rest = end == rest.npos ? std::string_view() : rest.substr(end + parting.size());
    }
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  // In memory where there is such a file system: fuzzers write thousands of folders a second.
  static std::filesystem::path make() {
    std::string name = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/fuzz-XXXXXX");
    if (!mkdtemp(name.data())) std::abort();
    return name;
  }

  void write(const char* name, std::string_view text) const {
    if (text.empty()) return;
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

  const std::filesystem::path path_ = make();
};
