// Products of matrices with any strides.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/core/repeated.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/lower/matrix_product.h"

namespace superstep::target::cpu {
using kernels::Matmul;
using kernels::MatrixStrides;

namespace {

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

}  // namespace

std::expected<Matmul, Refusal> describe_matmul(const Lowering& lowering, const MatrixProduct& product,
                                               ValueId result, std::vector<OuterBatch>* outer) {
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
  if (walk.extents.size() > 2 && !outer) return refuse("matmul", "more than two batch dimensions");
  const std::size_t repeated = walk.extents.size() > 2 ? walk.extents.size() - 2 : 0;
  for (std::size_t i = 0; i < repeated; ++i)
    outer->push_back({walk.extents[i], walk.strides[0][i], walk.strides[1][i], walk.strides[2][i]});
  Matmul matmul;
  matmul.a.type = lowering.element_in_memory(product.a);
  matmul.b.type = lowering.element_in_memory(product.b);
  matmul.c.type = lowering.type(result).element;
  std::array<MatrixStrides*, 3> matrices{&matmul.a, &matmul.b, &matmul.c};
  for (std::size_t i = repeated; i < walk.extents.size(); ++i) {
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

kernels::KernelPointer over_outer_batches(kernels::KernelPointer kernel, std::span<const OuterBatch> outer,
                                          const Matmul& matmul) {
  const auto bytes = [](std::int64_t step, ElementType type) {
    return step * static_cast<std::int64_t>(size_in_bytes(type));
  };
  std::vector<kernels::RepeatedAxis> axes;
  for (const OuterBatch& batch : outer) {
    kernels::RepeatedAxis axis{batch.extent,
                               {bytes(batch.a, matmul.a.type), bytes(batch.b, matmul.b.type)},
                               {bytes(batch.c, matmul.c.type)}};
    // A tensor of the epilogue lies as c does; what runs along the columns alone is shared by all places.
    for (const kernels::EpilogueStep& step : matmul.epilogue.steps)
      if (step.reads_input()) axis.input_steps.push_back(step.reads_tensor() ? bytes(batch.c, step.type) : 0);
    axis.input_steps.resize(kernel->info().inputs, 0);
    axes.push_back(std::move(axis));
  }
  return kernels::repeated(std::move(kernel), std::move(axes));
}

namespace {

// The epilogue of a batched product: its tensors must have the result's own strides.
Lowered set_matmul_strides(const Lowering& lowering, ProductTarget& target, const Matmul& matmul) {
  std::size_t operand = 0;
  for (kernels::EpilogueStep& step : target.epilogue.steps) {
    using Op = kernels::EpilogueOp;
    if (step.op == Op::bias || step.op == Op::scale_channels) {
      if (matmul.c.column != 1) return refuse("matmul", "a bias across the contiguous dimension");
      ++operand;
    }
    if (!step.reads_tensor()) continue;
    const ValueId id = target.operands[operand++];
    if (lowering.view(id).strides != lowering.view(target.result).strides)
      return refuse("matmul", "a fused operand lies in another order");
    step.column_stride = matmul.c.column == 1 ? matmul.c.row : matmul.c.column;
  }
  return {};
}

// A parameter of a product that is only served, whose columns do not lie side by side: it is copied once
// into rows, instead of block by block in every run.
struct FixedRows {
  std::optional<kernels::StridedCopy> copy;  // of [batch, batch, rows, columns]
  std::size_t bytes = 0;
};

FixedRows rows_of(const Lowering& lowering, ValueId id, MatrixStrides& matrix, const Matmul& matmul,
                  std::int64_t rows, std::int64_t columns) {
  const bool is_kept = lowering.graph().updates().empty() && lowering.section() == Section::body;
  if (!is_kept || matrix.column == 1 || columns == 1 || !made_of_parameters(lowering, id)) return {};
  std::vector<std::int64_t> extents{1, 1, rows, columns}, from{0, 0, matrix.row, matrix.column};
  for (std::size_t k = 0; k < 2; ++k) {
    if (matmul.batch[k] == 1 || matrix.batch[k] == 0) continue;  // one matrix for all
    extents[k] = matmul.batch[k];
    from[k] = matrix.batch[k];
  }
  const Strides dense = Shape(extents).row_major_strides();
  for (std::size_t k = 0; k < 2; ++k) matrix.batch[k] = from[k] == 0 ? 0 : dense[k];
  matrix.row = columns;
  matrix.column = 1;
  const std::size_t elements = static_cast<std::size_t>(extents[0] * extents[1] * rows * columns);
  return {kernels::StridedCopy{std::move(extents), std::move(from), dense, matrix.type, matrix.type},
          elements * size_in_bytes(matrix.type)};
}

DraftOperand operand_of(Lowering& lowering, ValueId id, const FixedRows& fixed) {
  if (!fixed.copy) return lowering.read(id);
  auto kernel = kernels::prepare(*fixed.copy);
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "rows of a parameter");
  std::string tag = "rows";  // whose axes are batches is the product's to say
  for (std::size_t k = 0; k < fixed.copy->extents.size(); ++k)
    tag += fmt::format(":{}/{}", fixed.copy->extents[k], fixed.copy->x_strides[k]);
  return lowering.packed(id, tag, std::move(*kernel), fixed.bytes);
}

}  // namespace

Lowered lower_strided(Lowering& lowering, const MatrixProduct& product, ProductTarget target) {
  std::vector<OuterBatch> outer;
  auto matmul = describe_matmul(lowering, product, target.result, &outer);
  if (!matmul) return std::unexpected(matmul.error());
  if (Lowered steps = add_product_steps(lowering, product, target); !steps)
    return std::unexpected(steps.error());
  if (Lowered set = set_matmul_strides(lowering, target, *matmul); !set) return set;
  matmul->epilogue = target.epilogue;
  const bool sums = outer.empty() && lowering.can_accumulate(target.result) &&
                    target.epilogue.steps.empty() && lowering.is_row_major(target.result);
  matmul->accumulate = sums && !lowering.runs_once();
  FixedRows a, b;
  if (outer.empty()) {
    a = rows_of(lowering, product.a, matmul->a, *matmul, matmul->rows, matmul->inner);
    b = rows_of(lowering, product.b, matmul->b, *matmul, matmul->inner, matmul->columns);
  }
  auto kernel = kernels::matmul().prepare(*matmul);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs{operand_of(lowering, product.a, a), operand_of(lowering, product.b, b)};
  append(inputs, lowering, target.operands);
  const DraftOperand output =
      sums ? *lowering.accumulator(target.result, Lowering::Sum::written) : lowering.write(target.result);
  lowering.emit(target.op, target.name, over_outer_batches(std::move(*kernel), outer, *matmul),
                std::move(inputs), {output});
  return {};
}

}  // namespace superstep::target::cpu
