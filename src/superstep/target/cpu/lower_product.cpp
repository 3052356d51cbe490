#include "superstep/target/cpu/lower_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/target/cpu/kernels/convolution.h"
#include "superstep/target/cpu/kernels/expanded_depthwise.h"
#include "superstep/target/cpu/kernels/matmul.h"
#include "superstep/target/cpu/kernels/weights.h"
#include "superstep/target/cpu/lower_elementwise.h"

namespace superstep::target::cpu {
namespace {

using kernels::Convolution;
using kernels::Image;
using kernels::Matmul;
using kernels::MatrixStrides;

// A product being lowered: where its result goes, and what is done to it on the way.
struct Target {
  NodeId product;
  ValueId result;                 // what is written: the product's output, or the group's root
  kernels::Epilogue epilogue;     // after the kernel's own bias
  std::vector<ValueId> operands;  // that the epilogue reads
  std::string name, op;
};

std::expected<Target, Refusal> target_of(const Lowering& lowering, NodeId product, const FusionGroup* group,
                                         int channel_axis) {
  const Node& node = lowering.graph().node(product);
  Target target{.product = product,
                .result = node.outputs[0],
                .epilogue = {},
                .operands = {},
                .name = node.name,
                .op = node.op};
  if (!group) return target;
  auto match = match_epilogue(lowering, *group, node.outputs[0], channel_axis);
  if (!match) return std::unexpected(match.error());
  target.result = lowering.graph().node(group->root).outputs[0];
  target.epilogue = std::move(match->epilogue);
  target.operands = std::move(match->operands);
  for (NodeId member : group->members) target.op += "+" + lowering.graph().node(member).op;
  return target;
}

using ImageOf = std::expected<Image, Refusal>(const Lowering& lowering, ValueId id);

// Puts the strides of the tensors that the epilogue reads into its steps.
Lowered set_operand_strides(const Lowering& lowering, Target& target, ImageOf* image_of = as_image) {
  std::size_t operand = 0;
  for (kernels::EpilogueStep& step : target.epilogue.steps) {
    using Op = kernels::EpilogueOp;
    const bool reads_tensor =
        step.op == Op::add || step.op == Op::multiply || step.op == Op::activation_gradient;
    if (reads_tensor) {
      const auto image = image_of(lowering, target.operands[operand]);
      if (!image) return std::unexpected(image.error());
      step.column_stride = image->column_stride;
      step.row_stride = image->row_stride;
    }
    if (reads_tensor || step.op == Op::bias || step.op == Op::scale_channels) ++operand;
  }
  return {};
}

void append(std::vector<DraftOperand>& inputs, Lowering& lowering, const std::vector<ValueId>& values) {
  for (ValueId value : values) inputs.push_back(lowering.read(value));
}

DraftOperand packed_weights(Lowering& lowering, const Convolution& convolution,
                            const kernels::KernelInfo& info, ValueId weights, kernels::WeightOrder order,
                            ElementType operand_type) {
  const ValueId source = behind_casts(lowering.graph(), weights);
  // Weights have the type of what they are multiplied with; layouts of pairs are bf16's alone.
  const bool pairs = info.weights == kernels::WeightLayout::taps_in_out_pairs ||
                     info.weights == kernels::WeightLayout::taps_out_in_pairs;
  const ElementType element = pairs                                    ? ElementType::bf16
                              : kernels::are_transformed(info.weights) ? info.arithmetic
                                                                       : operand_type;
  const auto transfer = kernels::weight_transfer(convolution, info.weights, order, element);
  if (kernels::is_stored_form(transfer)) return lowering.read(source);
  auto pack = kernels::prepare_pack(transfer);
  if (!pack) throw Error(ErrorCode::internal, to_string(pack.error()), "packing of weights");
  const std::size_t bytes = kernels::packed_elements(transfer) * size_in_bytes(transfer.type);
  const std::string tag = fmt::format("{}:{}:{}", kernels::name_of(info.weights), static_cast<int>(order),
                                      superstep::name_of(transfer.type));
  return lowering.packed(source, tag, std::move(*pack), bytes);
}

bool is_f32(const Lowering& lowering, ValueId id) { return lowering.type(id).element == ElementType::f32; }

// ---- convolutions ------------------------------------------------------------------------------------

std::vector<std::int64_t> kernel_shape(const Shape& weights) { return {weights.begin() + 2, weights.end()}; }

// Packing reads f32: the parameters themselves, behind the conversions of precision.
Lowered require_f32_weights(const Lowering& lowering, ValueId weights) {
  const ElementType element = lowering.element_in_memory(behind_casts(lowering.graph(), weights));
  if (element == ElementType::f32) return {};
  return refuse("product", fmt::format("weights in {}", superstep::name_of(element)));
}

// Bias as the first step of the epilogue. ONNX's bias has a value a channel; epilogues read f32.
Lowered prepend_bias(const Lowering& lowering, ValueId bias, Target& target) {
  if (lowering.type(behind_casts(lowering.graph(), bias)).element != ElementType::f32)
    return refuse("product", "a bias that is not in f32");
  target.epilogue.steps.insert(target.epilogue.steps.begin(),
                               kernels::EpilogueStep{.op = kernels::EpilogueOp::bias});
  target.operands.insert(target.operands.begin(), behind_casts(lowering.graph(), bias));
  return {};
}

std::expected<Convolution, Refusal> describe(const Lowering& lowering, const Node& node, ValueId x, ValueId y,
                                             const std::vector<std::int64_t>& kernel,
                                             const ImageCopy* copy = nullptr) {
  auto image_x = copy ? std::expected<Image, Refusal>(copy->image) : as_image(lowering, x);
  auto image_y = as_image(lowering, y);
  if (!image_x) return std::unexpected(image_x.error());
  if (!image_y) return std::unexpected(image_y.error());
  auto window = window_of(node, lowering.shape(x), kernel);
  if (!window) return std::unexpected(window.error());
  return Convolution{.x = *image_x,
                     .y = *image_y,
                     .window = *window,
                     .groups = node.attributes.integer("group", 1),
                     .constant_weights = lowering.graph().updates().empty()};
}

// Prepares the kernel from `list` and emits the step that reads `source` and the packed weights.
Lowered emit_convolution(Lowering& lowering, const kernels::ImplementationList<Convolution>& list,
                         Convolution convolution, ValueId source, ValueId weights, const Target& target,
                         ImageCopy* copy = nullptr) {
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

// Over window columns, where the kernel takes the weights in the order in which they are packed anyway.
Lowered lower_over_columns(Lowering& lowering, const Node& node, Target target) {
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

Lowered lower_convolution(Lowering& lowering, const Node& node, Target target, bool transposed) {
  if (transposed && node.attributes.text("auto_pad", "NOTSET") != "NOTSET")
    return refuse("input gradient", "automatic padding of a transposed convolution");
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
  const auto convolution =
      describe(lowering, node, x, y, kernel_shape(lowering.shape(node.inputs[1])), copy ? &*copy : nullptr);
  if (!convolution) return std::unexpected(convolution.error());
  if (Lowered weights = require_f32_weights(lowering, node.inputs[1]); !weights) return weights;
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    if (Lowered bias = prepend_bias(lowering, node.inputs[2], target); !bias) return bias;
  if (Lowered strides = set_operand_strides(lowering, target); !strides) return strides;
  const auto& list = transposed ? kernels::convolution_input_gradient() : kernels::convolution_forward();
  return emit_convolution(lowering, list, *convolution, node.inputs[0], node.inputs[1], target,
                          copy ? &*copy : nullptr);
}

// ---- products of matrices ------------------------------------------------------------------------------

struct MatrixProduct {
  ValueId a, b, bias;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1;
};

std::expected<MatrixProduct, Refusal> product_of(const Lowering& lowering, const Node& node) {
  MatrixProduct product{.a = node.inputs[0], .b = node.inputs[1], .bias = {}};
  if (node.op != "Gemm") return product;
  product.transpose_a = node.attributes.integer("transA", 0) != 0;
  product.transpose_b = node.attributes.integer("transB", 0) != 0;
  product.alpha = static_cast<float>(node.attributes.number("alpha", 1.0));
  if (node.inputs.size() > 2 && node.inputs[2].valid()) {
    const Shape& bias = lowering.shape(node.inputs[2]);
    const std::int64_t columns = lowering.shape(node.outputs[0])[1];
    const bool a_row = bias.element_count() == columns && bias.rank() > 0 && bias[bias.rank() - 1] == columns;
    if (!a_row || node.attributes.number("beta", 1.0) != 1.0)
      return refuse("product", "the added matrix is not one value a column");
    product.bias = node.inputs[2];
  }
  return product;
}

Lowered add_product_steps(const Lowering& lowering, const MatrixProduct& product, Target& target) {
  if (product.bias.valid())
    if (Lowered bias = prepend_bias(lowering, product.bias, target); !bias) return bias;
  if (product.alpha != 1)
    target.epilogue.steps.insert(
        target.epilogue.steps.begin(),
        kernels::EpilogueStep{.op = kernels::EpilogueOp::scale, .alpha = product.alpha});
  return {};
}

bool made_of_parameters(const Lowering& lowering, ValueId id) {
  const graph::Value& root = lowering.graph().value(lowering.view(id).root);
  return root.kind == graph::ValueKind::state || root.kind == graph::ValueKind::constant ||
         (root.kind == graph::ValueKind::computed && lowering.section_of(root.producer) == Section::prepare);
}

// A value [..., channels] as the matrix [rows, channels] that one stride walks.
std::expected<Image, Refusal> as_matrix(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const Strides& strides = lowering.view(id).strides;
  const std::size_t last = strides.size() - 1;
  if (shape.rank() == 2) return as_image(lowering, id);
  if (shape.rank() < 2 || (strides[last] != 1 && shape[shape.rank() - 1] > 1))
    return refuse("dense layer", "not a matrix with contiguous channels");
  Image image = kernels::dense_image(1, 1, 1, shape[shape.rank() - 1], lowering.element_in_memory(id));
  for (std::size_t axis = last; axis-- > 0;) {
    const std::int64_t extent = shape[static_cast<int>(axis)];
    if (extent == 1) continue;
    if (image.batch == 1) image.column_stride = strides[axis];
    if (strides[axis] != image.batch * image.column_stride)
      return refuse("dense layer", "one stride does not walk all rows");
    image.batch *= extent;
  }
  image.row_stride = image.batch * image.column_stride;
  if (const std::string fault = kernels::fault_of(image); !fault.empty()) return refuse("dense layer", fault);
  return image;
}

// x [..., in] times a matrix of parameters: a dense layer with weights packed ahead.
Lowered lower_dense(Lowering& lowering, const MatrixProduct& product, Target target) {
  if (!made_of_parameters(lowering, product.b))
    return refuse("dense layer", "the weights are not parameters");
  const Shape &a = lowering.shape(product.a), &b = lowering.shape(product.b);
  if (b.rank() != 2 || product.transpose_a) return refuse("dense layer", "not a plain [n, in] input");
  // Weights of bf16 have to be packed. Those of f32 need not, and in training packing them each step costs
  // what it gains; packed once they are read without a step to another page for every summed channel.
  const bool narrow = lowering.element_in_memory(product.a) == ElementType::bf16;
  if (a.rank() != 2 && !narrow && lowering.graph().updates().size() > 0)
    return refuse("dense layer", "weights of f32 that change are read where they lie");
  const auto x = as_matrix(lowering, product.a), y = as_matrix(lowering, target.result);
  if (!x) return std::unexpected(x.error());
  if (!y) return std::unexpected(y.error());
  // The order of the weights in memory, whichever way the graph reads them.
  const Strides& strides = lowering.view(product.b).strides;
  const bool rows_contiguous = lowering.is_row_major(product.b);
  const bool columns_contiguous = strides[0] == 1 && strides[1] == b[0];
  if (!rows_contiguous && !columns_contiguous) return refuse("dense layer", "the weights are not dense");
  if (Lowered weights = require_f32_weights(lowering, product.b); !weights) return weights;
  const bool stored_out_in = rows_contiguous == product.transpose_b;
  Convolution convolution{.x = *x, .y = *y};
  if (Lowered steps = add_product_steps(lowering, product, target); !steps)
    return std::unexpected(steps.error());
  if (Lowered set = set_operand_strides(lowering, target, as_matrix); !set) return set;
  convolution.epilogue = target.epilogue;
  auto kernel = kernels::convolution_forward().prepare(convolution);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{
      lowering.read(product.a),
      packed_weights(lowering, convolution, (*kernel)->info(), product.b,
                     stored_out_in ? kernels::WeightOrder::out_in_taps : kernels::WeightOrder::in_out_taps,
                     lowering.element_in_memory(product.a))};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

// The batch dimensions of three operands as at most two, joined where one stride can walk both.
struct BatchWalk {
  std::vector<std::int64_t> extents;
  std::array<std::vector<std::int64_t>, 3> strides;

  void push(std::int64_t extent, const std::array<std::int64_t, 3>& step) {
    if (extent == 1) return;
    bool joins = !extents.empty();
    for (std::size_t k = 0; k < 3 && joins; ++k) joins = strides[k].back() == extent * step[k];
    if (joins) {
      extents.back() *= extent;
      for (std::size_t k = 0; k < 3; ++k) strides[k].back() = step[k];
      return;
    }
    extents.push_back(extent);
    for (std::size_t k = 0; k < 3; ++k) strides[k].push_back(step[k]);
  }
};

// Products with one right operand are one product over all their rows, where one stride walks these.
void join_rows(Matmul& m) {
  for (std::size_t k = 2; k-- > 0;) {
    const bool joins = m.batch[k] > 1 && m.b.batch[k] == 0 && m.a.batch[k] == m.rows * m.a.row &&
                       m.c.batch[k] == m.rows * m.c.row && m.c.column == 1;
    if (!joins) return;
    m.rows *= m.batch[k];
    m.batch[k] = 1;
    m.a.batch[k] = m.c.batch[k] = 0;
  }
}

std::expected<Matmul, Refusal> describe_matmul(const Lowering& lowering, const MatrixProduct& product,
                                               ValueId result) {
  const Shape& c = lowering.shape(result);
  if (lowering.shape(product.a).rank() < 2 || lowering.shape(product.b).rank() < 2)
    return refuse("matmul", "an operand is a vector");
  const auto padded = [&](ValueId id) {
    Shape target = c;  // batch dimensions of c, matrix dimensions of the operand
    std::vector<std::int64_t> extents = c.extents();
    const Shape& own = lowering.shape(id);
    extents[extents.size() - 2] = own[own.rank() - 2];
    extents[extents.size() - 1] = own[own.rank() - 1];
    return lowering.broadcast_strides(id, Shape(extents));
  };
  const Strides a = padded(product.a), b = padded(product.b), own = lowering.view(result).strides;
  const std::size_t rank = own.size();
  BatchWalk walk;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis)
    walk.push(c[static_cast<int>(axis)], {a[axis], b[axis], own[axis]});
  if (walk.extents.size() > 2) return refuse("matmul", "more than two batch dimensions");
  Matmul matmul;
  matmul.a.type = lowering.element_in_memory(product.a);
  matmul.b.type = lowering.element_in_memory(product.b);
  matmul.c.type = lowering.type(result).element;
  std::array<MatrixStrides*, 3> matrices{&matmul.a, &matmul.b, &matmul.c};
  for (std::size_t i = 0; i < walk.extents.size(); ++i) {
    const std::size_t at = 2 - walk.extents.size() + i;
    matmul.batch[at] = walk.extents[i];
    for (std::size_t k = 0; k < 3; ++k) matrices[k]->batch[at] = walk.strides[k][i];
  }
  const auto set = [&](MatrixStrides& matrix, const Strides& strides, bool transpose) {
    matrix.row = strides[rank - 2];
    matrix.column = strides[rank - 1];
    if (transpose) std::swap(matrix.row, matrix.column);
  };
  set(matmul.a, a, product.transpose_a);
  set(matmul.b, b, product.transpose_b);
  set(matmul.c, own, false);
  matmul.rows = c[static_cast<int>(rank) - 2];
  matmul.columns = c[static_cast<int>(rank) - 1];
  const Shape& shape_a = lowering.shape(product.a);
  matmul.inner = shape_a[shape_a.rank() - (product.transpose_a ? 2 : 1)];
  // A dimension of one element may have any stride; broadcasting gave it 0.
  if (matmul.rows == 1 && matmul.c.row == 0) matmul.c.row = matmul.columns;
  if (matmul.columns == 1 && matmul.c.column == 0) matmul.c.column = 1;
  join_rows(matmul);
  return matmul;
}

// The epilogue of a batched product: its tensors must have the result's own strides.
Lowered set_matmul_strides(const Lowering& lowering, Target& target, const Matmul& matmul) {
  std::size_t operand = 0;
  for (kernels::EpilogueStep& step : target.epilogue.steps) {
    using Op = kernels::EpilogueOp;
    if (step.op == Op::bias || step.op == Op::scale_channels) {
      if (matmul.c.column != 1) return refuse("matmul", "a bias across the contiguous dimension");
      ++operand;
    }
    if (step.op != Op::add && step.op != Op::multiply && step.op != Op::activation_gradient) continue;
    const ValueId id = target.operands[operand++];
    if (lowering.view(id).strides != lowering.view(target.result).strides)
      return refuse("matmul", "a fused operand lies in another order");
    step.column_stride = matmul.c.column == 1 ? matmul.c.row : matmul.c.column;
  }
  return {};
}

Lowered lower_strided(Lowering& lowering, const MatrixProduct& product, Target target) {
  auto matmul = describe_matmul(lowering, product, target.result);
  if (!matmul) return std::unexpected(matmul.error());
  if (Lowered steps = add_product_steps(lowering, product, target); !steps)
    return std::unexpected(steps.error());
  if (Lowered set = set_matmul_strides(lowering, target, *matmul); !set) return set;
  matmul->epilogue = target.epilogue;
  const bool sums = lowering.can_accumulate(target.result) && target.epilogue.steps.empty() &&
                    lowering.is_row_major(target.result);
  matmul->accumulate = sums && !lowering.runs_once();
  auto kernel = kernels::matmul().prepare(*matmul);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{lowering.read(product.a), lowering.read(product.b)};
  append(inputs, lowering, target.operands);
  const DraftOperand output =
      sums ? *lowering.accumulator(target.result, Lowering::Sum::written) : lowering.write(target.result);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs), {output});
  return {};
}

Lowered lower_matrix_product(Lowering& lowering, const Node& node, Target target) {
  auto product = product_of(lowering, node);
  if (!product) return std::unexpected(product.error());
  Lowered dense = lower_dense(lowering, *product, target);
  if (dense) return dense;
  lowering.note_refusal(dense.error());
  return lower_strided(lowering, *product, std::move(target));
}

}  // namespace

Lowered lower_product(Lowering& lowering, NodeId product, const FusionGroup* group) {
  const Node& node = lowering.graph().node(product);
  const bool convolution = node.op == "Conv" || node.op == "ConvTranspose";
  const int channel_axis = convolution ? 1 : lowering.shape(node.outputs[0]).rank() - 1;
  auto target = target_of(lowering, product, group, channel_axis);
  if (!target) return std::unexpected(target.error());
  for (ValueId operand : target->operands)
    if (!convolution && !is_f32(lowering, operand) && lowering.type(operand).element != ElementType::bf16)
      return refuse("product", "a fused operand is neither f32 nor bf16");
  if (convolution) return lower_convolution(lowering, node, std::move(*target), node.op == "ConvTranspose");
  return lower_matrix_product(lowering, node, std::move(*target));
}

// ---- an expansion and the depthwise convolution behind it --------------------------------------------

namespace {

struct DescribedConvolution {
  Convolution convolution;
  Target target;
};

std::expected<DescribedConvolution, Refusal> described_convolution(const Lowering& lowering, NodeId id,
                                                                   const FusionGroup* group) {
  const Node& node = lowering.graph().node(id);
  auto target = target_of(lowering, id, group, 1);
  if (!target) return std::unexpected(target.error());
  auto convolution =
      describe(lowering, node, node.inputs[0], target->result, kernel_shape(lowering.shape(node.inputs[1])));
  if (!convolution) return std::unexpected(convolution.error());
  if (Lowered weights = require_f32_weights(lowering, node.inputs[1]); !weights)
    return std::unexpected(weights.error());
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    if (Lowered bias = prepend_bias(lowering, node.inputs[2], *target); !bias)
      return std::unexpected(bias.error());
  convolution->epilogue = target->epilogue;
  return DescribedConvolution{std::move(*convolution), std::move(*target)};
}

}  // namespace

bool expands_for_depthwise(const Lowering& lowering, const FusionGroup& group) {
  if (!group.product || lowering.section() != Section::body) return false;
  const Graph& graph = lowering.graph();
  const Node& product = graph.node(*group.product);
  const ValueId result = graph.node(group.root).outputs[0];
  const auto readers = lowering.consumers(result);
  if (product.op != "Conv" || readers.size() != 1 || lowering.leaves_section(result)) return false;
  const Node& reader = graph.node(readers[0]);
  const Shape &shape = lowering.shape(result), &window = lowering.shape(product.inputs[1]);
  const bool pointwise = window.element_count() == window[0] * window[1];
  return reader.op == "Conv" && reader.inputs[0] == result && shape.rank() == 4 && pointwise &&
         shape[1] > 1 && reader.attributes.integer("group", 1) == shape[1] &&
         product.attributes.integer("group", 1) == 1 && lowering.type(result).element == ElementType::f32;
}

Lowered lower_expanded_depthwise(Lowering& lowering, const FusionGroup& expansion, NodeId depthwise,
                                 const FusionGroup* group) {
  auto first = described_convolution(lowering, *expansion.product, &expansion);
  if (!first) return std::unexpected(first.error());
  auto second = described_convolution(lowering, depthwise, group);
  if (!second) return std::unexpected(second.error());
  auto kernel = kernels::prepare(
      kernels::ExpandedDepthwise{.expand = first->convolution, .depthwise = second->convolution});
  if (!kernel) return std::unexpected(kernel.error());
  const Node& product = lowering.graph().node(*expansion.product);
  const auto weights = [&](const DescribedConvolution& part, kernels::WeightLayout layout) {
    return packed_weights(lowering, part.convolution, {.weights = layout},
                          lowering.graph().node(part.target.product).inputs[1],
                          kernels::WeightOrder::out_in_taps, ElementType::f32);
  };
  std::vector<DraftOperand> inputs{lowering.read(product.inputs[0]),
                                   weights(*first, kernels::WeightLayout::taps_in_out)};
  append(inputs, lowering, first->target.operands);
  inputs.push_back(weights(*second, kernels::WeightLayout::taps_channels));
  append(inputs, lowering, second->target.operands);
  lowering.emit(first->target.op + "+" + second->target.op, second->target.name, std::move(*kernel),
                std::move(inputs), {lowering.write(second->target.result)});
  return {};
}

}  // namespace superstep::target::cpu
