#include "superstep/target/cpu/lower/operators/lower_product.h"

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/kernels/product/whole_product.h"
#include "superstep/target/cpu/kernels/product/wide_product.h"
#include "superstep/target/cpu/lower/matrix_product.h"
#include "superstep/target/cpu/lower/operators/lower_convolution.h"

namespace superstep::target::cpu {

std::expected<MatrixProduct, Refusal> product_of(const Lowering& lowering, const Node& node) {
  MatrixProduct product{.a = node.inputs[0], .b = node.inputs[1], .bias = {}};
  if (op::traits_of(node.op).product_kind != op::ProductKind::scaled_matrices) return product;
  product.transpose_a = node.attributes.integer("transA", 0) != 0;
  product.transpose_b = node.attributes.integer("transB", 0) != 0;
  product.alpha = static_cast<float>(node.attributes.number("alpha", 1.0));
  if (node.inputs.size() > 2 && node.inputs[2].valid()) {
    const Shape& bias = lowering.shape(node.inputs[2]);
    const std::int64_t columns = lowering.shape(node.outputs[0])[1];
    const bool a_row = bias.element_count() == columns && bias.rank() > 0 && bias[bias.rank() - 1] == columns;
    if (!a_row || node.attributes.number("beta", 1.0) != 1.0)
      return refuse("product", "the added matrix is not one value per column");
    product.bias = node.inputs[2];
  }
  return product;
}

Lowered add_product_steps(const Lowering& lowering, const MatrixProduct& product, ProductTarget& target) {
  if (product.bias.valid())
    if (Lowered bias = prepend_bias(lowering, product.bias, target); !bias) return bias;
  if (product.alpha != 1)
    target.epilogue.steps.insert(
        target.epilogue.steps.begin(),
        kernels::EpilogueStep{.op = kernels::EpilogueOp::scale, .alpha = product.alpha});
  return {};
}

namespace {

bool is_f32(const Lowering& lowering, ValueId id) { return lowering.type(id).element == ElementType::f32; }

Lowered lower_matrix_product(Lowering& lowering, const Node& node, ProductTarget target) {
  auto product = product_of(lowering, node);
  if (!product) return std::unexpected(product.error());
  Lowered dense = lower_dense(lowering, *product, target);
  if (dense) return dense;
  lowering.note_refusal(dense.error());
  return lower_strided(lowering, *product, std::move(target));
}

// In f64 nothing is fused to a product but its bias.
Lowered lower_wide_product(Lowering& lowering, const Node& node, const ProductTarget& target) {
  const auto product = product_of(lowering, node);
  if (!product) return std::unexpected(product.error());
  if (!target.epilogue.steps.empty() || target.result != node.outputs[0])
    return refuse("product of f64", "something is fused to it");
  std::vector<OuterBatch> outer;
  const auto matmul = describe_matmul(lowering, *product, target.result, &outer);
  if (!matmul) return std::unexpected(matmul.error());
  if (product->bias.valid() && !lowering.is_row_major(product->bias))
    return refuse("product of f64", "the bias does not lie in a line");
  auto kernel = kernels::prepare(kernels::WideProduct{
      .matmul = *matmul, .alpha = node.attributes.number("alpha", 1.0), .bias = product->bias.valid()});
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{lowering.read(product->a), lowering.read(product->b)};
  if (product->bias.valid()) inputs.push_back(lowering.read(product->bias));
  lowering.emit(target.op, target.name, over_outer_batches(std::move(*kernel), outer, *matmul),
                std::move(inputs), {lowering.write(target.result)});
  return {};
}

// How the zero points of an input lie: of MatMulInteger's rows or columns, `each` of them.
std::expected<kernels::WholeProduct::ZeroPoint, Refusal> zero_points_of(const Lowering& lowering,
                                                                        const Node& node, std::size_t input,
                                                                        std::int64_t each) {
  using ZeroPoint = kernels::WholeProduct::ZeroPoint;
  if (node.inputs.size() <= input || !node.inputs[input].valid()) return ZeroPoint::none;
  const Shape& shape = lowering.shape(node.inputs[input]);
  if (shape.element_count() == 1) return ZeroPoint::one;
  if (shape.rank() == 1 && shape[0] == each && lowering.is_row_major(node.inputs[input]))
    return ZeroPoint::each;
  return refuse("product of whole numbers", "zero points of matrices of their own");
}

}  // namespace

Lowered lower_whole_product(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto product = product_of(lowering, node);
  if (!product) return std::unexpected(product.error());
  if (product->bias.valid() || product->alpha != 1)
    return refuse("product of whole numbers", "something is added to it, or multiplied by it");
  std::vector<OuterBatch> outer;
  const auto matmul = describe_matmul(lowering, *product, node.outputs[0], &outer);
  if (!matmul) return std::unexpected(matmul.error());
  const auto of_rows = zero_points_of(lowering, node, 2, matmul->rows);
  const auto of_columns = zero_points_of(lowering, node, 3, matmul->columns);
  if (!of_rows) return std::unexpected(of_rows.error());
  if (!of_columns) return std::unexpected(of_columns.error());
  auto kernel = kernels::prepare(kernels::WholeProduct{*matmul, *of_rows, *of_columns});
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs;
  for (ValueId input : node.inputs)
    if (input.valid()) inputs.push_back(lowering.read(input));
  lowering.emit(node.op, node.name, over_outer_batches(std::move(*kernel), outer, *matmul), std::move(inputs),
                {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_product(Lowering& lowering, NodeId product, const FusionGroup* group) {
  const Node& node = lowering.graph().node(product);
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  const bool convolution = op::is_convolution(kind);
  const int channel_axis = convolution ? 1 : lowering.shape(node.outputs[0]).rank() - 1;
  auto target = target_of(lowering, product, group, channel_axis);
  if (!target) return std::unexpected(target.error());
  if (!convolution && lowering.type(node.outputs[0]).element == ElementType::f64)
    return lower_wide_product(lowering, node, *target);
  if (!convolution && is_integer(lowering.type(node.outputs[0]).element)) {
    if (target->result != node.outputs[0])
      return refuse("product of whole numbers", "something is fused to it");
    return lower_whole_product(lowering, product);
  }
  for (ValueId operand : target->operands)
    if (!convolution && !is_f32(lowering, operand) && lowering.type(operand).element != ElementType::bf16)
      return refuse("product", "a fused operand is neither f32 nor bf16");
  if (convolution)
    return lower_convolution(lowering, node, std::move(*target),
                             kind == op::ProductKind::transposed_convolution);
  return lower_matrix_product(lowering, node, std::move(*target));
}

}  // namespace superstep::target::cpu
