// Batched products of strided matrices: c(b, i, j) = sum over k of a(b, i, k) * b(b, k, j), or added to c.
//
// Every matrix may have any strides in both its dimensions, as long as c has one unit stride. Where the
// order is not the one the kernel needs, blocks of a or b are transposed into scratch. Attention in
// BraggNN's layout, for example: theta and phi [position][sample][channel], scores [sample][i][j]:
//   batch {N, 1}, rows = columns = positions, inner = channels,
//   a: theta, batch stride channels, row stride N * channels, column stride 1,
//   b: phi,   batch stride channels, row stride 1, column stride N * channels.
//
// Slots: inputs a, b, epilogue operands...; outputs c, epilogue outputs...
// c must not overlap a or b.
#pragma once

#include <array>

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Element (b0, b1, i, j) lies at b0 * batch[0] + b1 * batch[1] + i * row + j * column. A zero batch stride
// reuses one matrix for the whole batch.
struct MatrixStrides {
  std::array<std::int64_t, 2> batch = {0, 0};
  std::int64_t row = 1, column = 1;
  ElementType type = ElementType::f32;
};

// The epilogue sees c's unit-stride dimension as channels and the other one as columns: `bias` runs along
// the unit-stride dimension (columns j when both strides are 1). Its tensors have c's batch strides and own
// column_stride (between consecutive columns); row_stride is not used. Types: a, b, c all f32; or a and b
// bf16 with c f32 or bf16.
struct Matmul {
  std::array<std::int64_t, 2> batch = {1, 1};
  std::int64_t rows = 1, columns = 1, inner = 1;
  MatrixStrides a, b, c;
  bool accumulate = false;  // c += a b
  Epilogue epilogue;
};

const ImplementationList<Matmul>& matmul();

std::string fault_of(const Matmul& matmul);

}  // namespace superstep::kernels
