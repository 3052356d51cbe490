// IDX files, the format of the MNIST digits: two zero bytes, a type, a rank, big-endian extents and elements.
// Files compressed with gzip are read as well; they are written where the name ends in .gz.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "superstep/base/tensor.h"

namespace superstep::data {

// u8, i8, i16, i32, f32 or f64, of any rank. Throws Error (not_found, bad_file: another format, cut short,
// longer than it says).
Tensor read_idx(const std::filesystem::path& path);

// Writes bytes (u8) under a temporary name; close() puts the file in place. Throws Error (io).
class IdxWriter {
 public:
  IdxWriter(const std::filesystem::path& path, const Shape& shape);
  ~IdxWriter();
  IdxWriter(const IdxWriter&) = delete;
  IdxWriter& operator=(const IdxWriter&) = delete;

  void append(std::span<const std::uint8_t> elements);
  void close();  // throws Error (internal) when another number of elements was written than the shape has

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace superstep::data
