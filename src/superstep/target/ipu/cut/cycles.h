// What a vertex that evaluates a part of an operator takes: the machine model's closed forms of vertices
// (machine/ipu/vertex_cycles.h) where there is one for the operator, a rate by kind of work elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/op/core/traits.h"
#include "superstep/target/ipu/cut/fused.h"

namespace superstep::target::ipu {

struct PartTypes {
  const graph::Attributes& attributes;
  std::vector<graph::ValueType> inputs, outputs;  // of the part; an empty shape of no use where left out
};

// Tile cycles of a part, all workers together: an operation on every element, ...
std::int64_t elementwise_cycles(const machine::ipu::Hardware& hardware, op::Effort effort,
                                const PartTypes& types);

// ... the same of several that are one: every vector is loaded and stored once, ...
std::uint64_t fused_cycles(const machine::ipu::Hardware& hardware, const Fused& fused,
                           const PartTypes& types);

// ... and what operators have that are more than that.
using PartCycles = std::int64_t(const machine::ipu::Hardware& hardware, const PartTypes& types);
PartCycles conv_cycles, conv_transpose_cycles, conv_weight_gradient_cycles, matmul_cycles, gemm_cycles;
PartCycles reduction_cycles, channel_moments_cycles, channel_sums_cycles;
PartCycles arg_cycles, top_k_cycles;
PartCycles pooling_cycles, max_pool_gradient_cycles, average_pool_gradient_cycles;
PartCycles gather_cycles, gather_nd_cycles, scatter_nd_cycles;  // rows
PartCycles segment_sum_cycles, sparse_product_cycles;           // rows that are added up
PartCycles gather_elements_cycles, scatter_elements_cycles;     // each by an index of its own
PartCycles resize_cycles, resize_gradient_cycles;
PartCycles softmax_cycles, normalization_cycles, batch_normalization_cycles;
PartCycles fourier_cycles;
PartCycles cholesky_cycles;
PartCycles triangular_solve_cycles;
PartCycles recurrent_cycles, lstm_gradient_cycles;
PartCycles sgd_cycles, adam_cycles, adaptive_cycles;

}  // namespace superstep::target::ipu
