#include "superstep/target/cpu/kernels/bytes/simple_steps.h"

namespace superstep::kernels {
namespace {

bool is_rectifier(const EpilogueStep& step) {
  return step.op == EpilogueOp::activate && step.alpha >= 0 && step.alpha <= 1 &&
         (step.activation == Activation::relu || step.activation == Activation::leaky_relu);
}

}  // namespace

SimpleSteps simple_steps(const Epilogue& epilogue) {
  SimpleSteps found;
  for (const EpilogueStep& step : epilogue.steps) {
    const bool first = found.slope == 1 && !found.added;
    if (step.op == EpilogueOp::scale_channels && first && !found.bias && !found.factor) {
      found.factor = true;
    } else if (step.op == EpilogueOp::bias && first && !found.bias) {
      found.bias = true;
    } else if (step.op == EpilogueOp::add && step.type == ElementType::f32 && first) {
      found.added = true;
      found.added_column = step.column_stride;
      found.added_row = step.row_stride;
    } else if (is_rectifier(step) && found.slope == 1) {
      found.slope = step.activation == Activation::relu ? 0 : step.alpha;
    } else {
      found.simple = false;
    }
  }
  return found;
}

}  // namespace superstep::kernels
