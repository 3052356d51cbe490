// Asking for lines of memory before they are read or written: in a block of channels a line or two of every
// column are used, which the processor does not foresee. Internal to the depthwise kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_walk.h"

namespace superstep::kernels {

inline std::int64_t image_bytes(const Image& image) {
  return image.element_count() * static_cast<std::int64_t>(size_in_bytes(image.type));
}

// What is asked for in vain, because it is in a cache, costs more than the processor's own foresight loses.
inline constexpr std::int64_t second_level_bytes = 1 << 20, third_level_bytes = 20 << 20;

template <bool writes>
void fetch(const std::byte* at, std::int64_t bytes) {
  for (std::int64_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(at + offset, writes, 2);
}

// `base` holds the first channel of the block.
template <bool writes>
void fetch_columns(const Image& image, const std::byte* base, PartRange rows, PartRange columns,
                   std::int64_t step, std::int64_t channels) {
  const auto size = static_cast<std::int64_t>(size_in_bytes(image.type));
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; column += step)
      fetch<writes>(base + (row * image.row_stride + column * image.column_stride) * size, channels * size);
}

inline std::int64_t highest_source(const Run& run) {
  std::int64_t highest = lowest_source(run);
  for (const TapSource& tap : run.taps) highest = std::max(highest, tap.source);
  return highest;
}

// What the rows behind the stretch, as many as it has, read that it does not.
inline void fetch_next_sources(const Image& image, const std::byte* base, const Stretch& s) {
  if (s.rows_left == 0 || s.taps.count == 0) return;
  const Run &rows = *s.rows, &columns = *s.columns;
  const std::int64_t next = std::min(s.row_count, s.rows_left) * rows.source_step;
  const std::int64_t reached =
      s.source_row + (s.row_count - 1) * rows.source_step + highest_source(rows) - lowest_source(rows) + 1;
  const std::int64_t first = lowest_source(columns) * image.batch + s.begin * columns.source_step;
  const std::int64_t last =
      highest_source(columns) * image.batch + (s.begin + s.count - 1) * columns.source_step + image.batch - 1;
  fetch_columns<false>(image, base, {reached, reached + next}, {first, std::min(last + 1, image.columns())},
                       1, s.channels);
}

// The results of those rows, which are written (`writes`) or read.
template <bool writes>
void fetch_next_results(const Image& image, const std::byte* base, const Stretch& s) {
  if (s.rows_left == 0) return;
  const Run& columns = *s.columns;
  const std::int64_t first = columns.first * image.batch + s.begin * columns.result_step;
  for (std::int64_t i = 0; i < std::min(s.row_count, s.rows_left); ++i) {
    const std::int64_t row = s.result_row + (s.row_count + i) * s.rows->result_step;
    fetch_columns<writes>(image, base, {row, row + 1}, {first, first + s.count * columns.result_step},
                          columns.result_step, s.channels);
  }
}

// A block of an image, a few columns at each step(), while the block before it is used.
class BlockAhead {
 public:
  BlockAhead() = default;
  BlockAhead(const Image& image, const std::byte* base, std::int64_t channels)
      : image_(&image), base_(base), channels_(channels) {}

  // One of so many steps.
  void step(std::int64_t steps) {
    if (!image_) return;
    const std::int64_t columns = (image_->height * image_->columns() + steps - 1) / steps;
    for (std::int64_t i = 0; i < columns && row_ < image_->height; ++i) {
      fetch_columns<false>(*image_, base_, {row_, row_ + 1}, {column_, column_ + 1}, 1, channels_);
      if (++column_ == image_->columns()) column_ = 0, ++row_;
    }
  }

 private:
  const Image* image_ = nullptr;
  const std::byte* base_ = nullptr;
  std::int64_t channels_ = 0, row_ = 0, column_ = 0;
};

}  // namespace superstep::kernels
