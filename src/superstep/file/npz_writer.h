// NumPy's .npz files of any size: arrays whose rows come a block at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "superstep/base/tensor.h"

namespace superstep::data {

// Arrays are kept in files beside `path` until close() joins them, without compression, and puts the archive
// in place: for a moment the disk holds both. A writer that is destroyed before that leaves nothing behind,
// and what was at `path` stays. Throws Error: io, unsupported (bf16, which NumPy does not have).
class NpzWriter {
 public:
  explicit NpzWriter(const std::filesystem::path& path);
  ~NpzWriter();
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;

  // An array of the full shape, whose rows are written in order, from 0 on.
  void create(std::string_view name, ElementType type, const Shape& shape);
  void write_rows(std::string_view name, std::int64_t first, const Tensor& rows);
  void write(std::string_view name, const Tensor& tensor);  // create and fill

  void set_comment(std::string text);  // of the archive: Python's zipfile.ZipFile(path).comment

  void close();  // throws Error (invalid_argument) where rows are missing

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace superstep::data
