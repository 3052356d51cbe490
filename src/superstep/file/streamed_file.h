// A text file written piece by piece: to a temporary file beside `path`, which close() puts in place. One
// that is destroyed before close() leaves nothing behind.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace superstep::data {

class StreamedFile {
 public:
  explicit StreamedFile(std::filesystem::path path);  // throws Error (io)
  ~StreamedFile();
  StreamedFile(const StreamedFile&) = delete;
  StreamedFile& operator=(const StreamedFile&) = delete;
  void write(std::string_view text);
  void close();  // flushes and renames; throws Error (io)

 private:
  std::filesystem::path path_, partial_;
  std::ofstream stream_;
  bool closed_ = false;
};

}  // namespace superstep::data
