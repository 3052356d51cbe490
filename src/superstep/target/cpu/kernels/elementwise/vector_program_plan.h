// A VectorProgram settled for running: axes merged, registers assigned, pieces chosen. Internal to the
// kernels.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/elementwise/vector_ops.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"

namespace superstep::kernels {

// A tensor that is read or written, over the merged axes.
struct VectorStream {
  ElementType type;
  std::int64_t element_bytes;
  std::vector<std::int64_t> outer_strides;  // elements, of the outer axes
  std::int64_t plane_stride = 0, row_stride = 0, inner_stride = 0;
  LoadLoop* load = nullptr;
  LoadRowsLoop* load_rows = nullptr;  // of f32
  StoreLoop* store = nullptr;
  bool contiguous = false;  // pieces are one block of f32: used where they lie
  bool invariant = false;   // the same for every piece: loaded once
};

struct VectorInput {
  VectorStream stream;
  VectorProgram::Value value;
  std::int64_t reg;         // register to load into; -1 when contiguous
  bool kept_apart = false;  // loaded even where it lies ready
};

struct VectorInstruction {
  VectorProgram::Instruction instruction;
  VectorProgram::Value value;
  VectorLoop* loop;
  std::int64_t reg;
};

struct VectorOutput {
  VectorProgram::Output output;
  VectorStream stream;           // of Target::tensor
  bool direct = false;           // the last instruction writes it in place of a register
  std::int64_t accumulator = 0;  // of sums along axes: where their floats begin
  std::int64_t sum_count = 0;    // of sums along axes: how many floats
};

struct VectorPlan {
  std::vector<std::int64_t> outer;               // extents of the outer axes
  std::int64_t planes = 1, rows = 1, inner = 1;  // of the three innermost
  std::int64_t piece_planes = 1, piece_rows = 1, piece_inner = 1;
  std::vector<VectorInput> inputs;
  std::vector<std::pair<float, std::int64_t>> constants;  // value, register
  std::vector<std::pair<VectorProgram::Value, std::int64_t>> constant_values;
  std::vector<VectorInstruction> instructions;
  std::vector<VectorOutput> outputs;
  std::size_t values = 0;
  std::int64_t registers = 0, register_floats = 0;
  std::int64_t axis_sums = 0;  // floats of the outputs that are sums along axes
  std::int64_t sum_parts = 1;  // of them
  double elements = 1, bytes = 0, flops = 0;
};

std::expected<VectorPlan, std::string> make_vector_plan(const VectorProgram& program);

}  // namespace superstep::kernels
