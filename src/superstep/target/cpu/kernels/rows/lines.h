// What is done along one axis of a tensor in any order: running sums, positions of extremes, the largest few.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Lines of `length` elements, one for each place of the other axes. x is read, y and z are written; all
// strides in elements.
struct Lines {
  struct Axis {
    std::int64_t extent = 1, x = 0, y = 0, z = 0;
  };
  std::vector<Axis> axes;  // the others
  std::int64_t length = 1;
  std::int64_t x_step = 1, y_step = 1, z_step = 1;  // along the lines
  ElementType type = ElementType::f32;              // of x: f32, f64, bf16, f16, i32 or i64
};

// y[i] = x[0] + ... + x[i], from the other end if `reverse`, without x[i] itself if `exclusive`; of x's type.
// Floating types are summed in f64, integers wrap around. Slots: inputs x; outputs y.
struct RunningSum {
  Lines lines;
  bool exclusive = false, reverse = false;
};

// y (i64, one a line): the place of the largest element, or of the smallest; of equals the first or the last.
// NaN is more extreme than any number, as in NumPy. Slots: inputs x; outputs y.
struct ExtremePlace {
  Lines lines;
  bool largest = true, last = false;
};

// The `count` largest elements of each line, or smallest, in order, and their places (i64): equals in the
// order of theirs, NaN as larger than any number. Slots: inputs x; outputs y (values, of x's type), z
// (places).
struct ExtremeElements {
  Lines lines;
  std::int64_t count = 1;
  bool largest = true;
};

Prepared prepare(const RunningSum& sum);
Prepared prepare(const ExtremePlace& place);
Prepared prepare(const ExtremeElements& elements);

}  // namespace superstep::kernels
