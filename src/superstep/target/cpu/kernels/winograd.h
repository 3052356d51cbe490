// Convolutions of 3 x 3 taps at stride 1 with fewer multiplications: see winograd_matrices.h.
//
// Tiles of 2, 3 or 4 positions a side take 16, 25 or 36 products instead of 36, 81 or 144. For each pair of
// points the products of a block of tiles are one matrix product,
//   forward, input gradient   m[point][column, c_out] = v[point][column, c_in] u[point][c_in, c_out]
//   weight gradient           du[point][c_in, c_out] += v[point][column, c_in]^T z[point][column, c_out]
// with v the transformed inputs, u the transformed weights (packed ahead), z the transformed gradients of the
// output. Blocks are small enough that v, m and z stay in the second-level cache. f32 only. Internal to the
// kernels.
//
// Rounding: a result is a sum of terms up to some times larger than the direct sum's. Tests allow
// winograd_error_growth times the error of the direct sum; measured, it is 1.7 times for tiles of 4.
#pragma once

#include "superstep/target/cpu/kernels/batch_reduce.h"
#include "superstep/target/cpu/kernels/convolution.h"

namespace superstep::kernels {

inline constexpr double winograd_error_growth = 4;

// With tiles of a given size, whatever the time it takes. Refuses what it cannot do.
Prepared prepare_winograd_forward(const Convolution& convolution, std::int64_t tile, ProductMaker maker);
Prepared prepare_winograd_input_gradient(const Convolution& convolution, std::int64_t tile,
                                         ProductMaker maker);
Prepared prepare_winograd_weight_gradient(const Convolution& convolution, std::int64_t tile,
                                          ProductMaker maker);

// The three passes.
enum class ConvolutionPass { forward, input_gradient, weight_gradient };

// Why Winograd's algorithm cannot do this at all; empty when it can.
std::string winograd_fault(const Convolution& convolution);

}  // namespace superstep::kernels
