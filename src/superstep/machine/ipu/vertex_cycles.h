// Cycles of single vertices: closed forms of the vendor's published estimators (PopLibs, branch
// sdk-release-2.0, MIT), as design notes restate them. All are tile cycles of one vertex unless said
// otherwise; a worker issues every `workers` cycles.
#pragma once

#include <cstdint>

#include "superstep/machine/ipu/hardware.h"

namespace superstep::machine::ipu {

// n elements, one vertex on all workers: 11 + W (fixed + ceil(ceil(n / W) / v) (cycles_per_vector + loop)).
// `fixed`: 20 for a scalar operand, 41 (f32) or 32 (f16) for two tensors.
std::int64_t elementwise_cycles(const Hardware& hardware, std::int64_t n, std::int64_t vector,
                                std::int64_t cycles_per_vector, std::int64_t fixed, std::int64_t loop);
std::int64_t fill_cycles(const Hardware& hardware, std::int64_t n, ElementType element);
std::int64_t cast_cycles(const Hardware& hardware, std::int64_t n, ElementType from, ElementType to);

// Sums `depth` partials into each of `outputs` elements, a vector of 128 bits at a time: 24 to enter, 6 a
// vector of outputs, two 64-bit loads a vector of partials (the vendor's form where partials lie at one
// stride).
std::int64_t reduce_cycles(const Hardware& hardware, std::int64_t outputs, std::int64_t depth,
                           ElementType partials);

// The same where they lie in interleaved memory, as the partial sums of a product do: one load a vector.
std::int64_t reduce_strided_cycles(const Hardware& hardware, std::int64_t outputs, std::int64_t depth,
                                   ElementType partials);

// The place of the largest or smallest of `depth` elements for each of `outputs`: workers share the elements
// of one output, 9 + W (26 + 3 ceil(depth / W)), or each takes outputs of its own, whichever is faster.
std::int64_t arg_cycles(const Hardware& hardware, std::int64_t outputs, std::int64_t depth);

// One worker copying `offsets` rows of `row_elements`.
std::int64_t gather_worker_cycles(std::int64_t offsets, std::int64_t row_elements, std::int64_t vector);

// The worker of a matrix-unit vertex that makes n output positions in one pass. `fast`: f16 inputs with f32
// partial sums, or 16 units.
struct AmpForm {
  ElementType element = ElementType::f16, partials = ElementType::f32;
  std::int64_t units = 8;
  bool fast() const;
};
std::int64_t amp_1x1_worker_cycles(const AmpForm& form, std::int64_t n, bool zeroing);

struct AmpWork {
  std::int64_t conv_groups = 1, in_groups = 1, out_groups = 1;  // of a tile
  std::int64_t out_channels_per_group = 8, in_channels_per_group = 16;
};

// 1 x 1: `positions` output positions on the tile, spread over the workers.
std::int64_t amp_1x1_cycles(const Hardware& hardware, const AmpForm& form, const AmpWork& work,
                            std::int64_t positions);

// N x 1: kernels of kernel_outer x kernel_inner positions taken `kernel_height` rows at a time; each
// worker does `rows` rows of `row_positions` (slowest worker).
struct AmpWindow {
  std::int64_t kernel_outer = 1, kernel_inner = 1, kernel_height = 1;
  std::int64_t rows = 1, row_positions = 1;  // output rows of the tile, and positions in a row
};
std::int64_t amp_nx1_cycles(const Hardware& hardware, const AmpForm& form, const AmpWork& work,
                            const AmpWindow& window);

// Dot products without the matrix unit.
struct MacWork {
  std::int64_t conv_groups = 1, in_groups = 1, out_groups = 1;
  std::int64_t out_channels = 1, in_channels = 1;  // of a group
  std::int64_t kernel_positions = 1, rows = 1, row_positions = 1;
};
std::int64_t horizontal_dot_cycles(ElementType element, ElementType partials, std::int64_t size);
std::int64_t horizontal_mac_cycles(const Hardware& hardware, ElementType element, ElementType partials,
                                   const MacWork& work);

// Depth-wise: each worker accumulates over kernel rows, `conv_groups` in fours.
std::int64_t vertical_mac_cycles(const Hardware& hardware, std::int64_t conv_groups, std::int64_t in_groups,
                                 std::int64_t outputs, std::int64_t kernel_rows, std::int64_t kernel_columns);

// Groups of one, two or four channels on the matrix unit: windows are taken four columns at a time, and as
// many groups together as fill four channels (the vendor's SLIC vertex). f16 inputs, strides of 1 or 2 along
// the last axis.
struct SlicWork {
  std::int64_t channels = 1, conv_groups = 1;            // of a group; of a tile, in fours of channels
  std::int64_t kernel_rows = 1, kernel_columns = 1;      // of the window
  std::int64_t rows = 1, row_positions = 1, stride = 1;  // output rows of the tile, positions in a row
  std::int64_t units = 8;
  ElementType partials = ElementType::f32;
};
std::int64_t slic_cycles(const Hardware& hardware, const SlicWork& work);
// No more than slic_cycles() of any larger rows: a row of two to four positions takes longer than one of
// five.
std::int64_t least_slic_cycles(const Hardware& hardware, const SlicWork& work);

// One output channel group at a time from one input channel: positions x channels multiplications.
std::int64_t outer_product_cycles(const Hardware& hardware, std::int64_t positions, std::int64_t channels,
                                  ElementType element);

// Linear algebra on one worker: factorisation and triangular inverse of n x n.
std::int64_t cholesky_worker_cycles(std::int64_t n);
std::int64_t triangular_inverse_worker_cycles(std::int64_t n);

}  // namespace superstep::machine::ipu
