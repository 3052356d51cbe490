#include "superstep/target/cpu/lower/operators/lower_convolution.h"

#include "superstep/target/cpu/kernels/convolution/stem.h"
#include "superstep/target/cpu/lower/operators/lower_planar.h"
#include "superstep/target/cpu/plan/patterns.h"

namespace superstep::target::cpu {

using kernels::Convolution;
using kernels::Image;

std::expected<Convolution, Refusal> describe_convolution(const Lowering& lowering, const Node& node,
                                                         ValueId x, ValueId y, const ImageCopy* copy) {
  auto image_x = copy ? std::expected<Image, Refusal>(copy->image) : as_image(lowering, x);
  auto image_y = as_image(lowering, y);
  if (!image_x) return std::unexpected(image_x.error());
  if (!image_y) return std::unexpected(image_y.error());
  return Convolution{.x = *image_x,
                     .y = *image_y,
                     .window = window_of(lowering.graph(), node),
                     .groups = node.attributes.integer("group", 1),
                     .constant_weights = lowering.graph().updates().empty()};
}

namespace {

// Prepares the kernel from `list` and emits the step that reads `source` and the packed weights.
Lowered emit_convolution(Lowering& lowering, const kernels::ImplementationList<Convolution>& list,
                         Convolution convolution, ValueId source, ValueId weights,
                         const ProductTarget& target, ImageCopy* copy = nullptr) {
  convolution.epilogue = target.epilogue;
  auto kernel = list.prepare(convolution);
  if (!kernel) return std::unexpected(kernel.error());
  DraftOperand image = lowering.read(source);
  if (copy) {
    image = lowering.temporary(copy->bytes);
    lowering.emit("copy", target.name, std::move(copy->copy), {lowering.read(source)}, {image});
  }
  std::vector<DraftOperand> inputs{
      image, packed_weights(lowering, convolution, (*kernel)->info(), weights,
                            kernels::WeightOrder::out_in_taps, lowering.element_in_memory(source))};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

// A first convolution of a picture that lies as the user has it. In training its columns are laid out for the
// weights' gradient, which reads them again.
Lowered lower_stem(Lowering& lowering, const Node& node, ProductTarget target) {
  const ValueId x = node.inputs[0];
  const Shape& shape = lowering.shape(x);
  const Strides& strides = lowering.view(x).strides;
  if (!has_few_channels(node, lowering.type(x), lowering.shape(node.inputs[1])) || shape.rank() != 4 ||
      lowering.element_in_memory(x) != ElementType::f32)
    return refuse("first convolution", "not a picture of few channels in f32");
  if (!lowering.graph().updates().empty()) return refuse("first convolution", "it is trained");
  if (shape[3] > 1 && strides[3] != 1) return refuse("first convolution", "its rows are not contiguous");
  const auto y = as_image(lowering, target.result);
  if (!y) return std::unexpected(y.error());
  if (Lowered f32 = require_f32_weights(lowering, node.inputs[1]); !f32) return f32;
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    if (Lowered bias = prepend_bias(lowering, node.inputs[2], target); !bias) return bias;
  const kernels::StemConvolution stem{
      .convolution = {.x = kernels::dense_image(shape[2], shape[3], shape[0], shape[1]),
                      .y = *y,
                      .window = window_of(lowering.graph(), node),
                      .epilogue = target.epilogue},
      .x = {shape[1], shape[2], shape[3], strides[0], strides[1], strides[2]}};
  auto kernel = kernels::prepare(stem);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{
      lowering.read(x), packed_weights(lowering, stem.convolution, (*kernel)->info(), node.inputs[1],
                                       kernels::WeightOrder::out_in_taps, ElementType::f32)};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

// Over window columns, where the kernel takes the weights in the order in which they are packed anyway.
Lowered lower_over_columns(Lowering& lowering, const Node& node, ProductTarget target) {
  auto columns =
      over_window_columns(lowering, node, node.inputs[0], target.result, lowering.shape(node.inputs[1]));
  if (!columns) return refuse("window columns", "nothing is gained");
  if (node.inputs.size() > 2 && node.inputs[2].valid()) prepend_bias(lowering, node.inputs[2], target);
  if (Lowered strides = set_operand_strides(lowering, target); !strides) return strides;
  columns->convolution.epilogue = target.epilogue;
  auto kernel = kernels::convolution_forward().prepare(columns->convolution);
  if (!kernel) return std::unexpected(kernel.error());
  if ((*kernel)->info().weights != kernels::WeightLayout::taps_in_out)
    return refuse("window columns", "the kernel wants its weights in another order");
  const DraftOperand image = lowering.temporary(columns->bytes);
  lowering.emit("columns", target.name, std::move(columns->columns), {lowering.read(node.inputs[0])},
                {image});
  std::vector<DraftOperand> inputs{
      image, packed_weights(lowering, columns->original, (*kernel)->info(), node.inputs[1],
                            kernels::WeightOrder::out_in_taps, ElementType::f32)};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

}  // namespace

Lowered lower_convolution(Lowering& lowering, const Node& node, ProductTarget target, bool transposed) {
  if (!transposed && lowering.is_planar(target.product)) {
    Lowered planar = lower_planar(lowering, node, target);
    if (planar) return planar;
    lowering.note_refusal(planar.error());
  }
  if (!transposed && lower_stem(lowering, node, target)) return {};
  if (!transposed && lower_over_columns(lowering, node, target)) return {};
  // A transposed convolution is the input gradient of the convolution with x and y exchanged.
  const ValueId x = transposed ? target.result : node.inputs[0],
                y = transposed ? node.inputs[0] : target.result;
  std::optional<ImageCopy> copy;
  if (!transposed && !as_image(lowering, x)) {
    auto made = copied_into_image(lowering, x);
    if (!made) return std::unexpected(made.error());
    copy = std::move(*made);
  }
  const auto convolution = describe_convolution(lowering, node, x, y, copy ? &*copy : nullptr);
  if (!convolution) return std::unexpected(convolution.error());
  if (Lowered weights = require_f32_weights(lowering, node.inputs[1]); !weights) return weights;
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    if (Lowered bias = prepend_bias(lowering, node.inputs[2], target); !bias) return bias;
  if (Lowered strides = set_operand_strides(lowering, target); !strides) return strides;
  const auto& list = transposed ? kernels::convolution_input_gradient() : kernels::convolution_forward();
  return emit_convolution(lowering, list, *convolution, node.inputs[0], node.inputs[1], target,
                          copy ? &*copy : nullptr);
}

}  // namespace superstep::target::cpu
