// Convolutions of 3 x 3 taps at stride 1 with fewer multiplications: see winograd_matrices.h.
//
// Tiles of 2, 3 or 4 positions a side take 16, 25 or 36 products instead of 36, 81 or 144. For each pair of
// points the products of a block of tiles are one matrix product,
//   forward, input gradient   m[point][column, c_out] = v[point][column, c_in] u[point][c_in, c_out]
//   weight gradient           du[point][c_in, c_out] += v[point][column, c_in]^T z[point][column, c_out]
// with v the transformed inputs, u the transformed weights (packed ahead), z the transformed gradients of the
// output. Blocks are small enough that v, m and z stay in the second-level cache. Internal to the kernels.
//
// Images are f32 or bf16. Transforms and sums are f32. The products of f32 images are f32; those of bf16
// images are of v, u and z as they are (f32), or of v, u and z rounded to bf16, which takes half the time.
//
// Volumes: a plane of the result is a sum over the planes of the source under the window, each by its own 3 x
// 3 taps, and the sum is taken between the transforms: a plane is transformed once for all that read it in a
// block, and back once (forward and input gradient; the weight gradient is of single planes).
//
// Rounding: a result is a sum of terms up to some times larger than the direct sum's. In f32 tests allow
// winograd_error_growth times the error of the direct sum; measured, it is 1.7 times for tiles of 4. Products
// in bf16 round both factors to 8 bits, and what that leaves in the result grows with the tile:
// winograd_bf16_noise().
#pragma once

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

namespace superstep::kernels {

inline constexpr double winograd_error_growth = 4;

// The root mean square of the error that rounding both factors to bf16 leaves, as a share of the result's,
// for independent values about zero. It grows with the tile, by sums of squares over the matrices; rounded
// inputs and weights under a direct sum leave 0.0023. test_winograd.cpp measures it.
double winograd_bf16_noise(std::int64_t tile);

// The three passes.
enum class ConvolutionPass { forward, input_gradient, weight_gradient };

// Planes under a window, at most.
inline constexpr std::int64_t largest_winograd_depth = 7;

struct WinogradForm {
  std::int64_t tile = 4;
  ElementType products = ElementType::f32;  // or bf16, where what is transformed is bf16
};

// In a given form, whatever the time it takes. Refuses what it cannot do.
Prepared prepare_winograd_forward(const Convolution& convolution, WinogradForm form, ProductMaker maker);
Prepared prepare_winograd_input_gradient(const Convolution& convolution, WinogradForm form,
                                         ProductMaker maker);
Prepared prepare_winograd_weight_gradient(const Convolution& convolution, WinogradForm form,
                                          ProductMaker maker);

// Why Winograd's algorithm cannot do this at all; empty when it can.
std::string winograd_fault(const Convolution& convolution, ConvolutionPass pass);
// Why not in this form, images of `type` being transformed; empty when it can.
std::string winograd_fault(const WinogradForm& form, ElementType type);

// How a kernel of the form calls itself.
std::string name_of(const WinogradForm& form, ElementType type);

}  // namespace superstep::kernels
