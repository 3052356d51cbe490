// The element-wise operators that kernels compute as instructions of a vector program, or as the epilogue of
// a product: a line each. Others run by their definition, and join no group.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/plan/vector_compositions.h"

namespace superstep::target::cpu {

enum class VectorForm : std::uint8_t {
  unary,
  binary,    // Max, Min: of any number of operands
  swapped,   // of the second operand and the first
  select,    // Where
  convert,   // Cast: by the types on both sides
  activate,  // with numbers from the attributes
  composed,  // several instructions (vector_compositions.h)
};

struct VectorOperation {
  std::string_view op;
  VectorForm form;
  kernels::VectorOp instruction = kernels::VectorOp::activate;
  std::optional<kernels::Activation> activation =
      {};                      // what it is in an epilogue, and to VectorForm::activate
  double alpha = 0, beta = 0;  // attributes of these names where a node leaves them out
  Compose compose = nullptr;   // of VectorForm::composed
};

const VectorOperation* vector_operation(std::string_view op);  // null when there is none

}  // namespace superstep::target::cpu
