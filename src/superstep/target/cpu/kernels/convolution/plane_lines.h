// Rows of planes between zeros, for what goes over them with a window: the few that lie under a row of it at
// a time, in f32, each copied once for all rows of windows that read it. Internal to the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/convolution/planar.h"
#include "superstep/target/cpu/kernels/convolution/planar_loops.h"

namespace superstep::kernels {

class PlaneLines {
 public:
  // Of the rows of x under rows of `columns` windows.
  PlaneLines(const Planes& x, const Window& window, std::int64_t columns);

  std::int64_t elements() const { return slots_ * x_.channels * line_; }  // of the memory that holds them
  // The row of x with this number, where it was copied: padding, the image, zeros up to what the last whole
  // vector of windows reaches.
  float* at(float* memory, std::int64_t row, std::int64_t channel) const {
    return memory + (row % slots_ * x_.channels + channel) * line_;
  }

  // Goes down samples, one after the other.
  struct Progress {
    std::int64_t sample = -1, filled = 0;  // rows of the sample before this one were copied
  };
  // The window's rows inside x for `row` of a sample, whose lines it copies. Rows of a sample come in order.
  TapRange advance(Progress& progress, const void* x, float* memory, std::int64_t sample,
                   std::int64_t row) const;
  // The row of x under the window's first row.
  std::int64_t top(std::int64_t row) const { return row * window_.stride_h - window_.pad_top; }

 private:
  void fill(const void* x, float* memory, std::int64_t sample, std::int64_t row) const;

  Planes x_;
  Window window_;
  PlanarLine* copy_;
  std::int64_t slots_ = 1;   // rows of x that lie between zeros at a time
  std::int64_t line_ = 0;    // elements of such a row
  std::int64_t inside_ = 0;  // those of the image
};

// Memory behind a kernel's scratch, cut off piece by piece. Without scratch the pieces are null: their bytes
// are counted.
class ScratchPieces {
 public:
  explicit ScratchPieces(void* scratch) : scratch_(static_cast<std::byte*>(scratch)) {}
  template <class T>
  T* take(std::int64_t count) {
    std::byte* const piece = scratch_ ? scratch_ + bytes_ : nullptr;
    bytes_ += round_up(static_cast<std::size_t>(count) * sizeof(T), std::size_t{64});
    return reinterpret_cast<T*>(piece);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* scratch_;
  std::size_t bytes_ = 0;
};

// Asks for the row that follows in memory, while this one is worked on: rows of several tensors take turns,
// and processors that read ahead do so within a page.
inline void fetch_next_row(const void* row, std::int64_t bytes, bool writes = false) {
  const auto* next = static_cast<const std::byte*>(row) + bytes;
  for (std::int64_t offset = 0; offset < bytes; offset += 64)
    writes ? __builtin_prefetch(next + offset, 1, 2) : __builtin_prefetch(next + offset, 0, 2);
}

// What is wrong with planes of `batch` samples that windows go over, or an empty text.
std::string fault_of(const Planes& planes, std::int64_t batch);
// What is wrong with a window over planes, or an empty text.
std::string fault_over_planes(const Window& window);

// Multiply-adds of a window from planes x to each channel of planes of y's extents, with what is inside x.
double multiply_adds_over_planes(const Planes& x, const Window& window, const Planes& y, std::int64_t batch);

// Of all samples, without gaps.
double bytes_of(const Planes& planes, std::int64_t batch);

}  // namespace superstep::kernels
