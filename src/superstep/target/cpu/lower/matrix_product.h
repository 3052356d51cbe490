// Products of matrices: of a dense layer, or of any two.
#pragma once

#include <span>
#include <vector>

#include "superstep/target/cpu/kernels/product/matmul.h"
#include "superstep/target/cpu/lower/product_target.h"

namespace superstep::target::cpu {

// alpha * a b + bias, a and b transposed or not; the bias, where there is one, has a value a column.
struct MatrixProduct {
  ValueId a, b, bias;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1;
};

std::expected<MatrixProduct, Refusal> product_of(const Lowering& lowering, const Node& node);

// A state, a constant, or what is made of them before the first run.
bool made_of_parameters(const Lowering& lowering, ValueId id);

// Puts the bias and alpha in front of the target's epilogue.
Lowered add_product_steps(const Lowering& lowering, const MatrixProduct& product, ProductTarget& target);

// A batch axis beyond the two that the kernels of products walk: steps in elements.
struct OuterBatch {
  std::int64_t extent, a, b, c;
};

// The product with the strides of its operands, without epilogue. More than two batch axes are refused, or,
// by callers who repeat the product over them, put into `outer`.
std::expected<kernels::Matmul, Refusal> describe_matmul(const Lowering& lowering,
                                                        const MatrixProduct& product, ValueId result,
                                                        std::vector<OuterBatch>* outer = nullptr);
// The kernel of a product at every place of `outer`, its epilogue's operands with it.
kernels::KernelPointer over_outer_batches(kernels::KernelPointer kernel, std::span<const OuterBatch> outer,
                                          const kernels::Matmul& matmul);

// x [..., in] times a matrix of parameters: weights packed ahead, or read where they lie.
Lowered lower_dense(Lowering& lowering, const MatrixProduct& product, ProductTarget target);
// Any operands with strides.
Lowered lower_strided(Lowering& lowering, const MatrixProduct& product, ProductTarget target);

}  // namespace superstep::target::cpu
