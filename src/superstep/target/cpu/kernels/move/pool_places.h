// Maximum pooling with the places of the maxima: each in the whole row-major input, as ONNX counts them.
#pragma once

#include "superstep/target/cpu/kernels/move/pool.h"

namespace superstep::kernels {

// Slots: inputs x; outputs y, and i64 places, of which that of sample n, channel c, plane d, row h and column
// w of y lies at n * batch + c * channel + d * plane + h * row + w * column.
struct PoolPlaces {
  Pool pool;  // a maximum, without save_argmax
  std::int64_t batch = 0, channel = 0, plane = 0, row = 0, column = 0;
};

Prepared prepare(const PoolPlaces& places);

}  // namespace superstep::kernels
