// Plans of operators that are not products.
#pragma once

#include <cstdint>

#include "superstep/machine/ipu/convolution.h"

namespace superstep::machine::ipu {

// `inputs` tensors of `elements` in, one out; all spread evenly over the tiles. `cycles_per_vector` of
// arithmetic.
struct Elementwise {
  double elements = 0;
  int inputs = 1;
  ElementType element = ElementType::f16;
  std::int64_t cycles_per_vector = 2;
  double broadcast_bytes = 0;  // that every tile must receive first (a scalar, a bias)
  std::int64_t loop = 2;       // cycles a turn: 2 in assembly, 1 in place, 5 without assembly
};
Plan plan_elementwise(const Hardware& hardware, const Elementwise& work);

// Sums (maxima ...) of `depth` elements for each of `outputs`; `contiguous`: neighbours are reduced together.
struct Reduction {
  double outputs = 1, depth = 1;
  ElementType element = ElementType::f16;
};
Plan plan_reduction(const Hardware& hardware, const Reduction& work);

// The places of the largest or smallest of `depth` elements for each of `outputs`.
Plan plan_arg(const Hardware& hardware, const Reduction& work);

// Windows over positions x channels.
struct Pooling {
  double outputs = 0, inputs = 0;  // elements
  double window = 1;               // positions of a window
  ElementType element = ElementType::f16;
  bool maximum = true;
};
Plan plan_pooling(const Hardware& hardware, const Pooling& work, bool backward);

// Rows of a table picked by, or added at, indices.
struct Gather {
  std::int64_t table_rows = 1, row_elements = 1, indices = 1;
  ElementType element = ElementType::f16;
};
Plan plan_gather(const Hardware& hardware, const Gather& work);
Plan plan_scatter_add(const Hardware& hardware, const Gather& work);

// Elements picked by indices of their own along an axis of `extent`: lines do not know one another. `copies`:
// the result has all elements of the lines (a scatter).
struct Pick {
  double lines = 1, picks = 1;  // picks: of a line
  double extent = 1;
  ElementType element = ElementType::f16;
  bool copies = false;
};
Plan plan_pick(const Hardware& hardware, const Pick& work);

// The `kept` largest or smallest of each of `lines` of `length`, in order, with their places.
struct Sorting {
  double lines = 1, length = 1, kept = 1;
  ElementType element = ElementType::f16;
};
Plan plan_sorting(const Hardware& hardware, const Sorting& work);

// A copy of `bytes` into another order of atoms of `atom` bytes, all tiles taking part.
Plan plan_rearrangement(const Hardware& hardware, double bytes, std::int64_t atom);
Plan plan_fill(const Hardware& hardware, double elements, ElementType element);
Plan plan_cast(const Hardware& hardware, double elements, ElementType from, ElementType to);

// Recurrent layers: one step after the other.
struct Recurrent {
  std::int64_t steps = 1, batch = 1, inputs = 1, hidden = 1, gates = 4;  // 4: LSTM, 3: GRU
  ElementType element = ElementType::f16;
  bool training = false;
};
Plan plan_recurrent(const Hardware& hardware, const Recurrent& work);

// Factorisation and triangular solution by blocks, `batch` at the same time.
struct Blocked {
  std::int64_t batch = 1, size = 1, block = 16, columns = 1;
  ElementType element = ElementType::f32;
  bool upper = false;  // the result is transposed
};
Plan plan_cholesky(const Hardware& hardware, const Blocked& work);
Plan plan_triangular_solve(const Hardware& hardware, const Blocked& work);

}  // namespace superstep::machine::ipu
