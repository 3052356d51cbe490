// Operators that are defined by their decomposition into others: evaluation (in f64, rounded once), both
// derivatives and the cost all follow from it.
#pragma once

#include "superstep/op/core/derivative.h"

namespace superstep::op {

// The operations of the decomposition; one an output element where it cannot be built from types alone
// because an input must be known.
double flops_through(Decomposition decompose, const Attributes& attributes, std::span<const ValueType> inputs,
                     std::span<const ValueType> outputs);
template <auto Decompose>
double flops_through(const Attributes& attributes, std::span<const ValueType> inputs,
                     std::span<const ValueType> outputs) {
  return flops_through(Decompose, attributes, inputs, outputs);
}

struct Signature {
  std::string_view name;
  int since_opset = 1;
  int min_inputs = 1, max_inputs = 1, max_outputs = 1;
  std::uint32_t shape_inputs = 0;
};

template <auto Decompose>
Definition composite(const Signature& signature, decltype(Definition::infer) infer, const Traits& traits) {
  return {.name = signature.name,
          .since_opset = signature.since_opset,
          .min_inputs = signature.min_inputs,
          .max_inputs = signature.max_inputs,
          .max_outputs = signature.max_outputs,
          .traits = traits,
          .infer = infer,
          .flops = flops_through<Decompose>,
          .evaluate = evaluate_through<Decompose>,
          .vjp = vjp_through<Decompose>,
          .jvp = jvp_through<Decompose>,
          .decompose = Decompose,
          .shape_inputs = signature.shape_inputs};
}

}  // namespace superstep::op
