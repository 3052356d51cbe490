// The inner loops of copies. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

struct CopyRow {  // y has unit stride
  std::int64_t length, x_stride;
};

struct CopyRows {  // alike, in elements apart
  CopyRow row;
  std::int64_t count, x_step, y_step;
};

struct CopyTile {  // y has unit stride along the rows, x along the columns
  std::int64_t rows, columns;
  std::int64_t x_stride;  // between rows
  std::int64_t y_stride;  // between columns
};

struct CopyFunctions {
  void (*row)(const void* x, void* y, const CopyRow&) = nullptr;
  void (*rows)(const void* x, void* y, const CopyRows&) = nullptr;
  void (*tile)(const void* x, void* y, const CopyTile&) = nullptr;
};

}  // namespace superstep::kernels
