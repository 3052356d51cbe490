// Factors of symmetric positive definite matrices, and systems of equations with triangular ones: stacks of
// dense row-major matrices, f32 or f64, computed in their own type.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// l[k] l[k]^T = a[k] for every k, both order x order; of a the lower triangle is read, above the diagonal l
// is zero. A matrix that is not positive definite gives NaN everywhere. Slots: inputs a; outputs l.
struct CholeskyFactor {
  std::int64_t matrices = 1, order = 1;
  ElementType type = ElementType::f32;
};

// l[k] x[k] = b[k], or with the transpose of l[k]; l is order x order, of which the lower triangle is read, b
// and x order x columns. Slots: inputs l, b; outputs x, which may not be b.
struct TriangularSystem {
  std::int64_t matrices = 1, order = 1, columns = 1;
  bool transposed = false;
  ElementType type = ElementType::f32;
};

Prepared prepare(const CholeskyFactor& factor);
Prepared prepare(const TriangularSystem& system);

}  // namespace superstep::kernels
