// Products of matrices: of a dense layer, or of any two.
#pragma once

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

// The product with the strides of its operands, without epilogue.
std::expected<kernels::Matmul, Refusal> describe_matmul(const Lowering& lowering,
                                                        const MatrixProduct& product, ValueId result);

// x [..., in] times a matrix of parameters: weights packed ahead, or read where they lie.
Lowered lower_dense(Lowering& lowering, const MatrixProduct& product, ProductTarget target);
// Any operands with strides.
Lowered lower_strided(Lowering& lowering, const MatrixProduct& product, ProductTarget target);

}  // namespace superstep::target::cpu
