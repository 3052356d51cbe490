// A file mapped into memory, read-only: its bytes are read from the disk when they are first touched.
#pragma once

#include <filesystem>
#include <utility>

#include "superstep/onnx/wire_reader.h"

namespace superstep::onnx {

class MappedFile {
 public:
  // Throws Error (not_found, io).
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

}  // namespace superstep::onnx
