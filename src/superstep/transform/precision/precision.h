// Reduced precision for products, f32 for everything that needs it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::transform {

// The model with products and convolutions on bf16 or f16; apply before differentiation, whose rules carry
// the choice to the gradients.
//
//   Conv, ConvTranspose, Gemm, MatMul    where they are wide enough to gain (AutocastOptions): inputs are
//   cast down; the result has the reduced type, rounded once:
//                                        operators compute at least in f32 (op/core/definition.h)
//   activations by comparison, sums,     in the reduced type where all their values come in it; parameters
//   products and moves of elements       or where it is read in it alone; parameters and constants are cast
//                                        down for them; not where they give an output of the graph: the last
//                                        step is not rounded
//   LSTM                                 in f32, with the attribute `products` = "bf16": a target may round
//                                        what its products read, sums and states stay f32 (bf16 alone)
//   all others (softmax, normalisations, in f32: what they read is cast up
//   reductions, losses, exp, ...)
//
// Parameters stay f32 state (master weights), each with one Cast for all its readers; their gradients come
// out of that Cast's derivative and are f32. Inputs and outputs of the graph keep their types. Throws Error
// (invalid_argument) when `reduced` is neither bf16 nor f16.
struct AutocastOptions {
  // Products that sum fewer channels, or give fewer, stay in f32: the first layers of an image's few channels
  // and the last ones before the outputs, where rounding costs most and reduced precision gains nothing.
  std::int64_t least_width = 16;
  // Convolutions that keep channels apart sum none, and go by those that they have instead: where nothing is
  // trained half the bytes are worth the rounding. Otherwise they stay in f32.
  bool depthwise = false;
  // No derivatives follow: what nobody reads now, nobody will. A maximum whose place is not read is then
  // taken in the reduced type, where what reads it asks for that.
  bool served = false;
  // The model is to be trained: whoever chooses what is kept counts gradients as well.
  bool trained = false;
  // Results of products that stay in f32 all the same, by name: a target that gains nothing from the reduced
  // type there says so (target::Target::slow_in_bf16).
  std::set<std::string, std::less<>> kept = {};
};
// The products that would be on the reduced type.
std::vector<graph::NodeId> products_to_narrow(const graph::Graph& model, const AutocastOptions& options = {});
graph::Graph autocast(const graph::Graph& model, ElementType reduced, const AutocastOptions& options = {});

}  // namespace superstep::transform
