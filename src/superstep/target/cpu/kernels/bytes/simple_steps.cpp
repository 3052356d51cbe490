#include "superstep/target/cpu/kernels/bytes/simple_steps.h"

namespace superstep::kernels {
namespace {

bool is_rectifier(const EpilogueStep& step) {
  return step.op == EpilogueOp::activate && step.alpha >= 0 && step.alpha <= 1 &&
         (step.activation == Activation::relu || step.activation == Activation::leaky_relu);
}

bool adds(ElementType type) { return type == ElementType::f32 || type == ElementType::u8; }

}  // namespace

SimpleSteps simple_steps(const Epilogue& epilogue) {
  SimpleSteps found;
  for (const EpilogueStep& step : epilogue.steps) {
    const bool active = found.slope != 1 || found.hard_swish, first = !active && !found.added;
    if (step.op == EpilogueOp::scale_channels && first && !found.bias && !found.factor) {
      found.factor = true;
    } else if (step.op == EpilogueOp::bias && !active && !found.bias) {
      found.bias = true;
      found.added_first = found.added;
    } else if (step.op == EpilogueOp::add && adds(step.type) && first) {
      found.added = true;
      found.added_column = step.column_stride;
      found.added_row = step.row_stride;
      found.added_bytes = step.type == ElementType::u8;
      found.added_scale = step.alpha;
      found.added_zero = step.beta;
    } else if (step.op == EpilogueOp::activate && step.activation == Activation::hard_swish && first) {
      found.hard_swish = true;
    } else if (is_rectifier(step) && !active) {
      found.slope = step.activation == Activation::relu ? 0 : step.alpha;
    } else {
      found.simple = false;
    }
  }
  return found;
}

const void* take_operands(const SimpleSteps& steps, const void* const* operands, std::int64_t first_channel,
                          float* scale, IntegerBlock& block) {
  if (steps.factor) {
    const float* factors = static_cast<const float*>(*operands++) + first_channel;
    for (std::int64_t channel = 0; channel < block.channels; ++channel)
      scale[channel] = block.scale[channel] * factors[channel];
    block.scale = scale;
  }
  const void* added = steps.added_first ? *operands++ : nullptr;
  if (steps.bias) block.bias = static_cast<const float*>(*operands++) + first_channel;
  return steps.added && !steps.added_first ? *operands : added;
}

void set_added(const SimpleSteps& steps, const void* tensor, std::int64_t at, std::int64_t stride,
               IntegerBlock& block) {
  block.added_stride = stride;
  if (!steps.added_bytes) {
    block.added = static_cast<const float*>(tensor) + at;
    return;
  }
  block.added_bytes = static_cast<const std::uint8_t*>(tensor) + at;
  block.added_scale = steps.added_scale;
  block.added_zero = steps.added_zero;
}

}  // namespace superstep::kernels
