// The loops that a VectorProgram is made of, for each instruction set. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"

namespace superstep::kernels {

// `n` elements; out may be any of the operands.
struct VectorStep {
  const float *a, *b, *c, *d;
  float* out;
  std::int64_t n;
  const VectorProgram::Instruction* instruction;
};

using VectorLoop = void(const VectorStep& step);
using LoadLoop = void(const void* from, std::int64_t stride, std::int64_t n, float* to);
// `rows` rows of `n` elements, `row_stride` apart, one behind the other. Rows may be short: a call for each
// of them would take longer than its elements.
struct RowsToLoad {
  const void* from;
  std::int64_t row_stride, stride;  // in elements
  std::int64_t rows, n;
  float* to;
};
using LoadRowsLoop = void(const RowsToLoad& rows);
using StoreLoop = void(const float* from, void* to, std::int64_t stride, std::int64_t n);

struct VectorLoops {
  VectorLoop* (*of)(const VectorProgram::Instruction& instruction);
  LoadLoop* (*load)(ElementType type);    // nullptr: not supported
  StoreLoop* (*store)(ElementType type);  // nullptr: not supported
  LoadRowsLoop* load_rows;                // of f32
};

// For the instruction set in force.
const VectorLoops& vector_loops();

}  // namespace superstep::kernels
