// Dense layers.
#include "superstep/target/cpu/lower_elementwise.h"
#include "superstep/target/cpu/matrix_product.h"

namespace superstep::target::cpu {
namespace {

using kernels::Convolution;
using kernels::Image;

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

}  // namespace

Lowered lower_dense(Lowering& lowering, const MatrixProduct& product, ProductTarget target) {
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

}  // namespace superstep::target::cpu
