// Dense layers.
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/stored_product.h"
#include "superstep/target/cpu/lower/matrix_product.h"
#include "superstep/target/cpu/lower/operators/lower_elementwise.h"

namespace superstep::target::cpu {

bool made_of_parameters(const Lowering& lowering, ValueId id) {
  const graph::Value& root = lowering.graph().value(lowering.view(id).root);
  return root.kind == graph::ValueKind::state || root.kind == graph::ValueKind::constant ||
         (root.kind == graph::ValueKind::computed && lowering.section_of(root.producer) == Section::prepare);
}

namespace {

using kernels::Convolution;
using kernels::Image;

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

// A dense layer as images see it, with its epilogue described.
struct DenseLayer {
  Image x, y;
  bool out_in = false;  // weights lie [out][in]
};

std::expected<DenseLayer, Refusal> describe_layer(const Lowering& lowering, const MatrixProduct& product,
                                                  const ProductTarget& target) {
  if (!made_of_parameters(lowering, product.b))
    return refuse("dense layer", "the weights are not parameters");
  const Shape& b = lowering.shape(product.b);
  if (b.rank() != 2 || product.transpose_a) return refuse("dense layer", "not a plain [n, in] input");
  const auto x = as_matrix(lowering, product.a), y = as_matrix(lowering, target.result);
  if (!x) return std::unexpected(x.error());
  if (!y) return std::unexpected(y.error());
  // The order of the weights in memory, whichever way the graph reads them.
  const Strides& strides = lowering.view(product.b).strides;
  const bool rows_contiguous = lowering.is_row_major(product.b);
  const bool columns_contiguous = strides[0] == 1 && strides[1] == b[0];
  if (!rows_contiguous && !columns_contiguous) return refuse("dense layer", "the weights are not dense");
  if (Lowered weights = require_f32_weights(lowering, product.b); !weights)
    return std::unexpected(weights.error());
  return DenseLayer{*x, *y, rows_contiguous == product.transpose_b};
}

// Over more rows packing costs little beside the product, and packed weights are read faster.
constexpr std::int64_t most_stored_rows = 256;

// The layer's input in the order and type that `source` asks for.
DraftOperand stored_source(Lowering& lowering, const DenseLayer& layer, const ProductTarget& target,
                           const DraftOperand& x, kernels::StoredProduct::Source source) {
  using Source = kernels::StoredProduct::Source;
  const bool columns = source == Source::columns;
  if (source == Source::narrow || (!columns && layer.x.type == ElementType::f32)) return x;
  const std::int64_t rows = layer.x.positions(), in = layer.x.channels, stride = layer.x.column_stride;
  auto copy =
      kernels::prepare(columns ? kernels::StridedCopy{{in, rows}, {1, stride}, {rows, 1}, layer.x.type}
                               : kernels::StridedCopy{{rows, in}, {stride, 1}, {in, 1}, layer.x.type});
  if (!copy) throw Error(ErrorCode::internal, to_string(copy.error()), target.name);
  const DraftOperand made = lowering.temporary(static_cast<std::size_t>(rows * in) * sizeof(float));
  lowering.emit(columns ? "transpose" : "widen", target.name, std::move(*copy), {x}, {made});
  return made;
}

// In a training step of one micro-batch weights are read once a product: in few rows packing them takes
// longer than multiplying.
Lowered lower_stored(Lowering& lowering, const MatrixProduct& product, const DenseLayer& layer,
                     const ProductTarget& target) {
  const std::int64_t rows = layer.x.positions();
  if (lowering.graph().updates().empty() || !lowering.runs_once() || lowering.section() != Section::body)
    return refuse("stored weights", "packed weights are read more than once");
  if (rows > most_stored_rows) return refuse("stored weights", "packing costs little beside so many rows");
  const ValueId weights = lowering.unrounded(product.b);
  const auto source = kernels::best_source(rows, layer.out_in, layer.x.type);
  kernels::StoredProduct stored{.rows = rows,
                                .in = layer.x.channels,
                                .out = layer.y.channels,
                                .out_in = layer.out_in,
                                .source = source,
                                .x_stride = layer.x.column_stride,
                                .y_stride = layer.y.column_stride,
                                .y_type = layer.y.type,
                                .epilogue = target.epilogue};
  using Source = kernels::StoredProduct::Source;
  if (source == Source::rows && layer.x.type != ElementType::f32) stored.x_stride = stored.in;
  auto kernel = kernels::stored_product().prepare(stored);
  if (!kernel) return std::unexpected(kernel.error());
  const DraftOperand x = stored_source(lowering, layer, target, lowering.read(product.a), source);
  std::vector<DraftOperand> inputs{x, lowering.read(weights)};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

// Weights of bf16 have to be packed. Those of f32 need not, and in training packing them each step costs
// what it gains; packed once they are read without a step to another page for every summed channel.
Lowered lower_packed(Lowering& lowering, const MatrixProduct& product, const DenseLayer& layer,
                     const ProductTarget& target) {
  const bool narrow = layer.x.type == ElementType::bf16;
  if (lowering.shape(product.a).rank() != 2 && !narrow && lowering.graph().updates().size() > 0)
    return refuse("dense layer", "weights of f32 that change are read where they lie");
  const Convolution convolution{.x = layer.x, .y = layer.y, .epilogue = target.epilogue};
  auto kernel = kernels::convolution_forward().prepare(convolution);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{
      lowering.read(product.a),
      packed_weights(lowering, convolution, (*kernel)->info(), product.b,
                     layer.out_in ? kernels::WeightOrder::out_in_taps : kernels::WeightOrder::in_out_taps,
                     layer.x.type)};
  append(inputs, lowering, target.operands);
  lowering.emit(target.op, target.name, std::move(*kernel), std::move(inputs),
                {lowering.write(target.result)});
  return {};
}

}  // namespace

Lowered lower_dense(Lowering& lowering, const MatrixProduct& product, ProductTarget target) {
  const auto layer = describe_layer(lowering, product, target);
  if (!layer) return std::unexpected(layer.error());
  if (Lowered steps = add_product_steps(lowering, product, target); !steps)
    return std::unexpected(steps.error());
  if (Lowered set = set_operand_strides(lowering, target, as_matrix); !set) return set;
  Lowered stored = lower_stored(lowering, product, *layer, target);
  if (stored) return stored;
  lowering.note_refusal(stored.error());
  return lower_packed(lowering, product, *layer, target);
}

}  // namespace superstep::target::cpu
