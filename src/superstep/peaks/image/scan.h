// Where in a row of a frame anything is above a threshold: one pass over the pixels, in vectors. Nearly all
// blocks hold nothing, and are looked at no further.
#pragma once

#include <cstdint>

#include "superstep/peaks/image/correction.h"

namespace superstep::peaks {

// Pixels: two cache lines of 16-bit ones. Twice as many are as fast where there is nothing, and slower at
// spots.
inline constexpr std::int32_t scan_block = 64;

// The largest f32 that is not above the threshold: v > threshold and v > limit are the same of every f32.
float limit_of(double threshold);

class RowScan {
 public:
  RowScan(const Frame& frame, double threshold) : frame_(frame), threshold_(threshold) {}

  // The first columns of the blocks in which a pixel is above the threshold, bad ones and those without data
  // counted: blocks of scan_block pixels, the last shorter. `found` has room for all of a row.
  int blocks(std::int32_t row, std::int32_t* found) const;

 private:
  const Frame& frame_;
  double threshold_;
};

}  // namespace superstep::peaks
