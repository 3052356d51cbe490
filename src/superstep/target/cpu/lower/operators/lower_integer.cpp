#include "superstep/target/cpu/lower/operators/lower_integer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "superstep/target/cpu/kernels/bytes/quantize.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/lower/image_operands.h"
#include "superstep/target/cpu/lower/operators/lower_elementwise.h"
#include "superstep/target/cpu/lower/operators/lower_product.h"

namespace superstep::target::cpu {
namespace {

using kernels::Image;
using kernels::IntegerConvolution;

// A constant of one element, or `otherwise` where the input is left out.
std::optional<double> single_constant(const Graph& graph, const Node& node, std::size_t input,
                                      double otherwise) {
  if (node.inputs.size() <= input || !node.inputs[input].valid()) return otherwise;
  if (graph.type(node.inputs[input]).shape.element_count() != 1) return std::nullopt;
  return uniform_constant(graph, node.inputs[input]);
}

// ---- the product -----------------------------------------------------------------------------------------

// Rows of channels: [..., channels] row-major, or a matrix in any order that as_image takes.
std::expected<Image, Refusal> as_rows(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  if (shape.rank() == 2) return as_image(lowering, id);
  if (!lowering.is_row_major(id))
    return refuse("integer product", "rows are not one after another in memory");
  const std::int64_t channels = shape[shape.rank() - 1];
  return kernels::dense_image(1, 1, shape.element_count() / std::max<std::int64_t>(1, channels), channels,
                              lowering.element_in_memory(id));
}

std::expected<Image, Refusal> image_of(const Lowering& lowering, const Node& product, ValueId id) {
  return product.op == "ConvInteger" ? as_image(lowering, id) : as_rows(lowering, id);
}

Lowered check_operands(const Lowering& lowering, const Node& product) {
  const Graph& graph = lowering.graph();
  const ValueId weights = product.inputs[1];
  if (lowering.type(product.inputs[0]).element != ElementType::u8)
    return refuse("integer product", "the input is not u8");
  if (lowering.type(weights).element != ElementType::i8)
    return refuse("integer product", "the weights are not i8");
  if (graph.value(weights).kind != graph::ValueKind::constant &&
      graph.value(weights).kind != graph::ValueKind::state)
    return refuse("integer product", "the weights are not parameters");
  if (product.op == "MatMulInteger" && lowering.shape(weights).rank() != 2)
    return refuse("integer product", "the weights are not a matrix");
  if (product.op == "MatMulInteger" && lowering.shape(product.inputs[0]).rank() < 2)
    return refuse("integer product", "the input is a vector");
  if (!left_out_or_zero(graph, product, 3)) return refuse("integer product", "weights with a zero point");
  return {};
}

// The kernel's description, with `result` as y.
std::expected<IntegerConvolution, Refusal> describe(const Lowering& lowering, const Node& product,
                                                    ValueId result) {
  if (Lowered checked = check_operands(lowering, product); !checked) return std::unexpected(checked.error());
  const auto zero_point = single_constant(lowering.graph(), product, 2, 0);
  if (!zero_point) return refuse("integer product", "the zero point is not one constant");
  const auto x = image_of(lowering, product, product.inputs[0]), y = image_of(lowering, product, result);
  if (!x) return std::unexpected(x.error());
  if (!y) return std::unexpected(y.error());
  IntegerConvolution convolution{
      .x = *x, .y = *y, .zero_point = static_cast<std::int32_t>(*zero_point), .epilogue = {}};
  if (product.op == "MatMulInteger") return convolution;
  convolution.window = window_of(lowering.graph(), product);
  convolution.groups = product.attributes.integer("group", 1);
  return convolution;
}

DraftOperand packed_weights(Lowering& lowering, const Node& product, const IntegerConvolution& convolution) {
  const auto order =
      product.op == "ConvInteger" ? kernels::WeightOrder::out_in_taps : kernels::WeightOrder::in_out_taps;
  auto pack = kernels::prepare_byte_pack(convolution, order);
  if (!pack) throw Error(ErrorCode::internal, to_string(pack.error()), "packing of weights");
  return lowering.packed(product.inputs[1], fmt::format("quads:{}", static_cast<int>(order)),
                         std::move(*pack), kernels::byte_pack_bytes(convolution));
}

// ---- the dequantisation ----------------------------------------------------------------------------------

int channel_axis(const Lowering& lowering, const Node& product) {
  return product.op == "ConvInteger" ? 1 : lowering.shape(product.outputs[0]).rank() - 1;
}

Lowered check_scales(const Lowering& lowering, const Node& dequantize, const Node& product) {
  const Shape& shape = lowering.shape(dequantize.outputs[0]);
  const ValueId scale = dequantize.inputs[1];
  if (dequantize.attributes.integer("block_size", 0) != 0)
    return refuse("integer product", "scales of blocks");
  if (lowering.type(scale).element != ElementType::f32)
    return refuse("integer product", "the scale is not f32");
  if (lowering.graph().value(scale).kind == graph::ValueKind::computed)
    return refuse("integer product", "the scale is not known before");
  if (lowering.shape(scale).element_count() == 1) return {};
  const int axis = normalize_axis(dequantize.attributes.integer("axis", 1), shape.rank());
  if (axis != channel_axis(lowering, product))
    return refuse("integer product", "the scales do not run along the channels");
  return {};
}

// A scale for every channel, where the graph has one for all.
DraftOperand scales_of(Lowering& lowering, const Node& dequantize, std::int64_t channels) {
  const ValueId scale = dequantize.inputs[1];
  if (lowering.shape(scale).element_count() == channels) return lowering.read(scale);
  auto spread = kernels::prepare(kernels::StridedCopy{.extents = {channels},
                                                      .x_strides = {0},
                                                      .y_strides = {1},
                                                      .x_type = ElementType::f32,
                                                      .y_type = ElementType::f32});
  if (!spread) throw Error(ErrorCode::internal, to_string(spread.error()), "scales");
  return lowering.packed(scale, fmt::format("channels:{}", channels), std::move(*spread),
                         static_cast<std::size_t>(channels) * sizeof(float));
}

// The QuantizeLinear to u8 that alone reads `value`, with one constant scale and zero point.
std::optional<NodeId> only_quantization(const Lowering& lowering, ValueId value) {
  const auto readers = lowering.consumers(value);
  if (readers.size() != 1 || lowering.leaves_section(value)) return std::nullopt;
  const Node& node = lowering.graph().node(readers[0]);
  if (node.op != "QuantizeLinear" || lowering.type(node.outputs[0]).element != ElementType::u8)
    return std::nullopt;
  const bool constants =
      single_constant(lowering.graph(), node, 1, 1) && single_constant(lowering.graph(), node, 2, 0);
  return constants ? std::optional(readers[0]) : std::nullopt;
}

// What the product becomes: where it is written, and what is done to it on the way.
struct Fused {
  ValueId result;
  kernels::Epilogue epilogue;
  std::vector<ValueId> operands;
  std::string op;
  std::optional<NodeId> quantize;
};

// Sums read bytes that are one value after another, without their values in f32.
void add_as_bytes(const Lowering& lowering, Fused& fused) {
  const Graph& graph = lowering.graph();
  std::size_t operand = 0;
  for (kernels::EpilogueStep& step : fused.epilogue.steps) {
    if (!step.reads_input()) continue;
    ValueId& read = fused.operands[operand++];
    const graph::Value& value = graph.value(read);
    if (step.op != kernels::EpilogueOp::add || value.kind != graph::ValueKind::computed) continue;
    const Node& node = graph.node(value.producer);
    if (!is_read_bytes(graph, node)) continue;
    step.type = ElementType::u8;
    step.alpha = static_cast<float>(*single_constant(graph, node, 1, 1));
    step.beta = static_cast<float>(*single_constant(graph, node, 2, 0));
    read = node.inputs[0];
  }
}

std::expected<Fused, Refusal> fuse(const Lowering& lowering, const Node& dequantize, const Node& product,
                                   const FusionGroup* group) {
  Fused fused{.result = dequantize.outputs[0],
              .epilogue = {},
              .operands = {},
              .op = product.op,
              .quantize = std::nullopt};
  if (group) {
    auto match = match_epilogue(lowering, *group, dequantize.outputs[0], channel_axis(lowering, product));
    if (!match) return std::unexpected(match.error());
    fused.result = lowering.graph().node(group->root).outputs[0];
    fused.epilogue = std::move(match->epilogue);
    fused.operands = std::move(match->operands);
    for (NodeId member : group->members) fused.op += "+" + lowering.graph().node(member).op;
    add_as_bytes(lowering, fused);
  }
  fused.quantize = only_quantization(lowering, fused.result);
  if (fused.quantize) {
    fused.result = lowering.graph().node(*fused.quantize).outputs[0];
    fused.op += "+QuantizeLinear";
  }
  return fused;
}

Lowered set_operand_strides(const Lowering& lowering, const Node& product, Fused& fused) {
  std::size_t operand = 0;
  for (kernels::EpilogueStep& step : fused.epilogue.steps) {
    if (step.reads_tensor()) {
      const auto image = image_of(lowering, product, fused.operands[operand]);
      if (!image) return std::unexpected(image.error());
      step.column_stride = image->column_stride;
      step.row_stride = image->row_stride;
    }
    if (step.reads_input()) ++operand;
  }
  return {};
}

// Can the sums of `product` wait for the dequantisation that reads them?
bool waits(const Lowering& lowering, NodeId id) {
  const Node& product = lowering.graph().node(id);
  const auto readers = lowering.consumers(product.outputs[0]);
  if (readers.size() != 1 || lowering.leaves_section(product.outputs[0])) return false;
  const Node& dequantize = lowering.graph().node(readers[0]);
  if (!is_dequantized_product(lowering.graph(), dequantize)) return false;
  if (!check_scales(lowering, dequantize, product)) return false;
  const auto convolution = describe(lowering, product, dequantize.outputs[0]);
  return convolution && kernels::integer_convolution().prepare(*convolution);
}

// ConvInteger and MatMulInteger at their own place: left to the dequantisation, or the sums alone.
Lowered lower_sums(Lowering& lowering, NodeId id) {
  if (waits(lowering, id)) return {};
  const Node& product = lowering.graph().node(id);
  const auto convolution = describe(lowering, product, product.outputs[0]);
  if (!convolution) return std::unexpected(convolution.error());
  auto kernel = kernels::integer_convolution().prepare(*convolution);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{lowering.read(product.inputs[0]),
                                   packed_weights(lowering, product, *convolution)};
  lowering.emit(product.op, product.name, std::move(*kernel), std::move(inputs),
                {lowering.write(product.outputs[0])});
  return {};
}

// By the kernels of packed weights, or of any operands.
Lowered lower_matrix_sums(Lowering& lowering, NodeId id) {
  Lowered packed = lower_sums(lowering, id);
  if (packed) return packed;
  lowering.note_refusal(packed.error());
  return lower_whole_product(lowering, id);
}

// ---- quantisation by itself ------------------------------------------------------------------------------

// An element-wise program over a tensor in the order in which it lies in memory.
class QuantizationProgram {
 public:
  QuantizationProgram(const Lowering& lowering, ValueId result)
      : lowering_(lowering),
        result_(result),
        order_(physical_order(lowering.shape(result), lowering.view(result).strides)),
        program(extents()) {}

  std::int32_t input(ValueId id, const Strides& strides) {
    return program.input(lowering_.element_in_memory(id), in_order(strides));
  }
  kernels::Prepared finish(std::int32_t value) {
    program.store(value, lowering_.type(result_).element, in_order(lowering_.view(result_).strides));
    return kernels::prepare(program);
  }

 private:
  std::vector<std::int64_t> extents() const {
    std::vector<std::int64_t> extents;
    for (int axis : order_) extents.push_back(lowering_.shape(result_)[axis]);
    return extents;
  }
  Strides in_order(const Strides& strides) const {
    Strides ordered;
    for (int axis : order_) ordered.push_back(strides[static_cast<std::size_t>(axis)]);
    return ordered;
  }

  const Lowering& lowering_;
  ValueId result_;
  std::vector<int> order_;

 public:
  kernels::VectorProgram program;
};

// The zero point of all slices alike.
std::optional<double> one_zero_point(const Graph& graph, const Node& node) {
  return left_out_or_zero(graph, node, 2) ? std::optional(0.0) : single_constant(graph, node, 2, 0);
}

bool is_byte(ElementType element) { return element == ElementType::u8 || element == ElementType::i8; }

// The strides of scales along their axis, or of one scale for all.
Strides scale_strides(const Lowering& lowering, const Node& node) {
  const int rank = lowering.shape(node.outputs[0]).rank();
  Strides strides(static_cast<std::size_t>(rank), 0);
  if (lowering.shape(node.inputs[1]).element_count() > 1)
    strides[static_cast<std::size_t>(normalize_axis(node.attributes.integer("axis", 1), rank))] = 1;
  return strides;
}

// Rows that are dense in themselves, in input and result alike: the whole of both, or the columns of images.
std::optional<kernels::Quantize> rows_of(const Lowering& lowering, ValueId x, ValueId y) {
  const Shape& shape = lowering.shape(y);
  const Strides& strides = lowering.view(y).strides;
  if (lowering.view(x).strides == strides && is_dense(shape, strides))
    return kernels::Quantize{.elements = shape.element_count()};
  const auto from = as_image(lowering, x), to = as_image(lowering, y);
  const auto in_one_line = [](const Image& image) {
    return image.row_stride == image.columns() * image.column_stride;
  };
  if (!from || !to || !in_one_line(*from) || !in_one_line(*to)) return std::nullopt;
  return kernels::Quantize{.elements = from->channels,
                           .rows = from->height * from->columns(),
                           .x_stride = from->column_stride,
                           .y_stride = to->column_stride};
}

// One pass to bytes with one scale, where input and result lie in the same order.
Lowered lower_dense_quantize(Lowering& lowering, NodeId id) {
  if (lowering.is_done(id)) return {};
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const auto scale = single_constant(lowering.graph(), node, 1, 1),
             zero_point = single_constant(lowering.graph(), node, 2, 0);
  if (!scale || !zero_point) return refuse("quantize", "more than one scale or zero point");
  if (lowering.type(y).element != ElementType::u8 || lowering.element_in_memory(x) != ElementType::f32)
    return refuse("quantize", "quantizes f32 to u8 alone");
  auto quantize = rows_of(lowering, x, y);
  if (!quantize) return refuse("quantize", "input and result do not lie in rows of the same order");
  quantize->scale = static_cast<float>(*scale);
  quantize->zero_point = static_cast<std::int32_t>(*zero_point);
  auto kernel = kernels::prepare(*quantize);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(x)}, {lowering.write(y)});
  return {};
}

Lowered lower_quantize(Lowering& lowering, NodeId id) {
  if (lowering.is_done(id)) return {};
  const Node& node = lowering.graph().node(id);
  const auto zero_point = one_zero_point(lowering.graph(), node);
  if (!zero_point) return refuse("vector program", "more than one zero point");
  if (node.attributes.integer("block_size", 0) != 0) return refuse("vector program", "scales of blocks");
  if (!is_byte(lowering.type(node.outputs[0]).element) ||
      lowering.type(node.inputs[0]).element != ElementType::f32 ||
      lowering.type(node.inputs[1]).element != ElementType::f32)
    return refuse("vector program", "quantizes f32 to bytes alone");
  using kernels::VectorOp;
  QuantizationProgram p(lowering, node.outputs[0]);
  const auto x = p.input(node.inputs[0], lowering.view(node.inputs[0]).strides);
  std::vector<DraftOperand> inputs{lowering.read(node.inputs[0])};
  std::int32_t scaled = 0;
  if (const auto scale = single_constant(lowering.graph(), node, 1, 1)) {
    // The inverse, as the fused kernels take it: a value between two bytes may fall to the other one.
    scaled = p.program.binary(VectorOp::mul, x, p.program.constant(1 / static_cast<float>(*scale)));
  } else {
    scaled = p.program.binary(VectorOp::div, x, p.input(node.inputs[1], scale_strides(lowering, node)));
    inputs.push_back(lowering.read(node.inputs[1]));
  }
  const auto rounded = p.program.unary(VectorOp::round, scaled);
  auto kernel =
      p.finish(p.program.binary(VectorOp::add, rounded, p.program.constant(static_cast<float>(*zero_point))));
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_dequantize(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  if (is_dequantized_product(lowering.graph(), node) &&
      waits(lowering, lowering.graph().value(node.inputs[0]).producer))
    return lower_dequantized_product(lowering, id, nullptr);
  const auto zero_point = one_zero_point(lowering.graph(), node);
  if (!zero_point) return refuse("vector program", "more than one zero point");
  if (node.attributes.integer("block_size", 0) != 0) return refuse("vector program", "scales of blocks");
  if (lowering.type(node.outputs[0]).element != ElementType::f32 ||
      !is_byte(lowering.type(node.inputs[0]).element))
    return refuse("vector program", "dequantizes bytes to f32 alone");
  using kernels::VectorOp;
  QuantizationProgram p(lowering, node.outputs[0]);
  const auto x = p.input(node.inputs[0], lowering.view(node.inputs[0]).strides);
  const auto scale = p.input(node.inputs[1], scale_strides(lowering, node));
  const auto centred =
      p.program.binary(VectorOp::sub, x, p.program.constant(static_cast<float>(*zero_point)));
  auto kernel = p.finish(p.program.binary(VectorOp::mul, centred, scale));
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[0]), lowering.read(node.inputs[1])},
                {lowering.write(node.outputs[0])});
  return {};
}

constexpr Lowerer lowerers[] = {
    {"ConvInteger", "integer convolution", lower_sums},
    {"MatMulInteger", "integer product", lower_matrix_sums},
    {"QuantizeLinear", "quantize", lower_dense_quantize},
    {"QuantizeLinear", "vector program", lower_quantize},
    {"DequantizeLinear", "vector program", lower_dequantize},
};

}  // namespace

Lowered lower_dequantized_product(Lowering& lowering, NodeId id, const FusionGroup* group) {
  const Graph& graph = lowering.graph();
  const Node &dequantize = graph.node(id), &product = producer_of(graph, dequantize.inputs[0]);
  if (!waits(lowering, graph.value(dequantize.inputs[0]).producer))
    return refuse("integer product", "its sums are stored");
  auto fused = fuse(lowering, dequantize, product, group);
  if (!fused) return std::unexpected(fused.error());
  auto convolution = describe(lowering, product, fused->result);
  if (!convolution) return std::unexpected(convolution.error());
  if (Lowered set = set_operand_strides(lowering, product, *fused); !set) return set;
  convolution->epilogue = fused->epilogue;
  if (fused->quantize) {
    const Node& quantize = graph.node(*fused->quantize);
    convolution->y_scale = static_cast<float>(*single_constant(graph, quantize, 1, 1));
    convolution->y_zero_point = static_cast<std::int32_t>(*single_constant(graph, quantize, 2, 0));
  }
  auto kernel = kernels::integer_convolution().prepare(*convolution);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{lowering.read(product.inputs[0]),
                                   packed_weights(lowering, product, *convolution),
                                   scales_of(lowering, dequantize, convolution->y.channels)};
  for (ValueId operand : fused->operands) inputs.push_back(lowering.read(operand));
  lowering.emit(fused->op, product.name, std::move(*kernel), std::move(inputs),
                {lowering.write(fused->result)});
  if (fused->quantize) lowering.mark_done(*fused->quantize);
  return {};
}

extern constinit const LowererFamily integer_lowerers{lowerers};

}  // namespace superstep::target::cpu
