// A primitive as a graph that targets compile: what is timed is what users get.
//
// Forward: input x, state `weights` (f32, cast where the precision is lower), output y. Training adds the
// input dy, the output dx and the gradients of the weights, which are kept as states "weights.gradient" the
// way an optimiser would read them: averaged over micro-batches.
//   gemm   x [m, k], weights [k, n], y [m, n]
//   conv   x [batch, channels, height, width], weights [filters, channels, filter height, filter width]
//   relu   x [batch, channels, height, width]
//   lstm, gru, rnn   x [batch, steps, inputs], weights "w" [1, gates hidden, inputs] and "r" [1, gates
//   hidden,
//          hidden] without bias, y [batch, steps, hidden]; a GRU as cuDNN has it, its reset gate behind the
//          product
// The gradients alone have no y.
#pragma once

#include <string>

#include "superstep/lab/bench/configurations.h"
#include "superstep/target/target.h"

namespace superstep::lab {

struct PrimitiveOptions {
  std::string precision = "f32";  // f32, bf16, f16; int8 for gemm and conv, forward alone
  Passes passes = Passes::forward;
  std::uint64_t seed = 1;  // of the weights
  bool measure_steps = false;
};

// Throws Error (unsupported) for a precision that the primitive does not have, or gradients that need its
// forward pass.
target::GraphAtBatch primitive_graph(const Primitive& primitive, const PrimitiveOptions& options);

// The element type of inputs and outputs: i8 for int8 (whose input is u8, and whose output i32).
ElementType element_of(const std::string& precision);  // throws Error (invalid_argument)

// Values in [-scale, scale) that look random; the same for the same seed and size.
void fill_random(Tensor& tensor, std::uint64_t seed, double scale);

}  // namespace superstep::lab
