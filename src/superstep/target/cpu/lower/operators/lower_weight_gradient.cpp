// Gradients of convolutions by their weights, summed over micro-batches in the kernel's own order.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/lower/image_operands.h"
#include "superstep/target/cpu/lower/operators/lower_planar.h"

namespace superstep::target::cpu {
namespace {

std::expected<kernels::Convolution, Refusal> describe(const Lowering& lowering, const Node& node,
                                                      const std::optional<ImageCopy>& copy) {
  const auto x =
      copy ? std::expected<kernels::Image, Refusal>(copy->image) : as_image(lowering, node.inputs[0]);
  const auto dy = as_image(lowering, node.inputs[1]);
  if (!x) return std::unexpected(x.error());
  if (!dy) return std::unexpected(dy.error());
  return kernels::Convolution{.x = *x,
                              .y = *dy,
                              .window = window_of(lowering.graph(), node),
                              .groups = node.attributes.integer("group", 1)};
}

kernels::KernelPointer clearing(std::size_t elements) {
  kernels::VectorProgram program({static_cast<std::int64_t>(elements)});
  program.store(program.constant(0), ElementType::f32, {1});
  return std::move(*kernels::prepare(program));
}

struct Chosen {
  kernels::KernelPointer kernel;
  kernels::Convolution description;               // what the order of the weights depends on
  std::optional<ColumnConvolution> columns = {};  // made first, where the kernel reads them
  std::optional<ImageCopy> copy = {};             // likewise
};

// Over window columns where there are few channels and the kernel keeps the order of the weights.
std::expected<Chosen, Refusal> choose(const Lowering& lowering, const Node& node) {
  auto columns =
      over_window_columns(lowering, node, node.inputs[0], node.inputs[1], lowering.shape(node.outputs[0]));
  if (columns) {
    auto kernel = kernels::convolution_weight_gradient().prepare(columns->convolution);
    if (kernel && (*kernel)->info().weights == kernels::WeightLayout::taps_in_out)
      return Chosen{std::move(*kernel), columns->original, std::move(columns)};
  }
  std::optional<ImageCopy> copy;
  if (!as_image(lowering, node.inputs[0])) {
    auto made = copied_into_image(lowering, node.inputs[0]);
    if (!made) return std::unexpected(made.error());
    copy = std::move(*made);
  }
  const auto convolution = describe(lowering, node, copy);
  if (!convolution) return std::unexpected(convolution.error());
  auto kernel = kernels::convolution_weight_gradient().prepare(*convolution);
  if (!kernel) return std::unexpected(kernel.error());
  return Chosen{std::move(*kernel), *convolution, std::nullopt, std::move(copy)};
}

DraftOperand image_of(Lowering& lowering, const Node& node, Chosen& chosen) {
  const DraftOperand x = lowering.read(node.inputs[0]);
  if (!chosen.columns && !chosen.copy) return x;
  const DraftOperand image = lowering.temporary(chosen.columns ? chosen.columns->bytes : chosen.copy->bytes);
  lowering.emit(chosen.columns ? "columns" : "copy", node.name,
                std::move(chosen.columns ? chosen.columns->columns : chosen.copy->copy), {x}, {image});
  return image;
}

Lowered lower_weight_gradient(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId result = lowering.widened(node.outputs[0]);
  if (lowering.type(result).element != ElementType::f32)
    return refuse("weight gradient", "the result is not f32");
  if (lowering.is_planar(id)) {
    Lowered planar = lower_planar_gradient(lowering, node, result);
    if (planar) return planar;
    lowering.note_refusal(planar.error());
  }
  auto chosen = choose(lowering, node);
  if (!chosen) return std::unexpected(chosen.error());
  const auto transfer = kernels::weight_transfer(chosen->description, chosen->kernel->info().weights);
  auto unpack = kernels::prepare_unpack(transfer);
  if (!unpack) return std::unexpected(unpack.error());
  lowering.skip_widening(node.outputs[0]);
  const std::size_t elements = kernels::packed_elements(transfer);
  std::vector<DraftOperand> inputs{image_of(lowering, node, *chosen), lowering.read(node.inputs[1])};
  if (lowering.can_accumulate(result)) {
    const DraftOperand sum = *lowering.native_accumulator(result, elements, std::move(*unpack));
    lowering.emit(node.op, node.name, std::move(chosen->kernel), std::move(inputs), {sum});
    return {};
  }
  const DraftOperand sum = lowering.temporary(elements * sizeof(float));
  lowering.emit("clear", node.name, clearing(elements), {}, {sum});
  lowering.emit(node.op, node.name, std::move(chosen->kernel), std::move(inputs), {sum});
  lowering.emit("unpack", node.name, std::move(*unpack), {sum}, {lowering.write(result)});
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.ConvWeightGradient", "weight gradient", lower_weight_gradient}};

}  // namespace

extern constinit const LowererFamily convolution_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
