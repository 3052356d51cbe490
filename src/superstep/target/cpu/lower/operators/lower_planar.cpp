#include "superstep/target/cpu/lower/operators/lower_planar.h"

#include "superstep/target/cpu/kernels/convolution/planar_gradient.h"

namespace superstep::target::cpu {
namespace {

using kernels::Planes;

std::expected<Planes, Refusal> planes_of(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const Strides& strides = lowering.view(id).strides;
  if (shape.rank() != 4) return refuse("planes", "not [N, C, H, W]");
  if (shape[3] > 1 && strides[3] != 1) return refuse("planes", "rows are not contiguous in memory");
  return Planes{.channels = shape[1],
                .height = shape[2],
                .width = shape[3],
                .sample = strides[0],
                .channel = strides[1],
                .row = strides[2],
                .type = lowering.element_in_memory(id)};
}

bool lie_alike(const Lowering& lowering, ValueId a, ValueId b) {
  const Shape& shape = lowering.shape(a);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (shape[axis] > 1 && lowering.view(a).strides[i] != lowering.view(b).strides[i]) return false;
  }
  return shape == lowering.shape(b);
}

// Tensors that the epilogue reads lie as the result does.
Lowered require_operands_as(const Lowering& lowering, const ProductTarget& target) {
  std::size_t operand = 0;
  for (const kernels::EpilogueStep& step : target.epilogue.steps) {
    if (step.reads_tensor() && !lie_alike(lowering, target.operands[operand], target.result))
      return refuse("planes", "a tensor that follows lies otherwise");
    if (step.reads_input()) ++operand;
  }
  return {};
}

}  // namespace

Lowered lower_planar(Lowering& lowering, const Node& node, ProductTarget target) {
  if (!lowering.is_planar(target.product)) return refuse("planes", "others want its images otherwise");
  const auto x = planes_of(lowering, node.inputs[0]), y = planes_of(lowering, target.result);
  if (!x) return std::unexpected(x.error());
  if (!y) return std::unexpected(y.error());
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    if (Lowered bias = prepend_bias(lowering, node.inputs[2], target); !bias) return bias;
  if (Lowered operands = require_operands_as(lowering, target); !operands) return operands;
  auto kernel = kernels::prepare(kernels::PlanarConvolution{.batch = lowering.shape(node.inputs[0])[0],
                                                            .x = *x,
                                                            .window = window_of(lowering.graph(), node),
                                                            .parts = {{*y, target.epilogue}}});
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{lowering.read(node.inputs[0]),
                                   lowering.read(lowering.unrounded(node.inputs[1]))};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

Lowered lower_planar_gradient(Lowering& lowering, const Node& node, ValueId result) {
  const auto x = planes_of(lowering, node.inputs[0]), dy = planes_of(lowering, node.inputs[1]);
  if (!x) return std::unexpected(x.error());
  if (!dy) return std::unexpected(dy.error());
  if (!lowering.is_row_major(result)) return refuse("planes", "the weights lie otherwise");
  const bool sums = lowering.can_accumulate(result);
  auto kernel =
      kernels::prepare(kernels::PlanarWeightGradient{.batch = lowering.shape(node.inputs[0])[0],
                                                     .x = *x,
                                                     .window = window_of(lowering.graph(), node),
                                                     .parts = {{*dy, sums && !lowering.runs_once()}}});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.skip_widening(node.outputs[0]);
  const DraftOperand output =
      sums ? *lowering.accumulator(result, Lowering::Sum::written) : lowering.write(result);
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[0]), lowering.read(node.inputs[1])}, {output});
  return {};
}

}  // namespace superstep::target::cpu
