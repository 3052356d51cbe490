// What the values of a data set are like: read whole when it is small, in evenly spaced blocks when not.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/show/array_file.h"

namespace superstep::show {

// A block of a data set: an entry for each axis.
struct Block {
  std::vector<std::int64_t> first, count;
};

// Blocks that cover the whole shape when it has at most `limit` elements; otherwise at most 64 blocks of
// rows, evenly spaced along the outermost axis and cut at the middle of the others, of about `limit`
// elements together.
std::vector<Block> sample_blocks(const Shape& shape, std::int64_t limit);

struct Statistics {
  std::int64_t looked_at = 0;  // values; of complex numbers, the amplitudes
  bool sampled = false;        // not every value was looked at
  std::int64_t not_finite = 0;
  double low = 0, high = 0, mean = 0, deviation = 0;  // of the finite ones
  std::vector<double> values;                         // the finite ones
};

// Throws Error that names the data set when it cannot be read.
Statistics look_at(const ArrayFile& file, const data::DataSetInfo& info);

// The shape without the axis that complex numbers add.
Shape shape_of_elements(const data::DataSetInfo& info);

// Amplitudes of interleaved real and imaginary parts.
std::vector<double> amplitudes(const Tensor& pairs);

}  // namespace superstep::show
