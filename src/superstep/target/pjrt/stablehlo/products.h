// Products that several operators are made of.
#pragma once

#include "superstep/op/product/convolution.h"
#include "superstep/target/pjrt/stablehlo/emitter.h"

namespace superstep::target::stablehlo {

// In what type products of elements of a type are summed: f16 and bf16 in f32.
ElementType product_type(ElementType element);

// As NumPy's matmul, with vectors as matrices of one row or column.
Value matrix_product(Emitter& emit, Value a, Value b, ElementType element);

// x [N, C, ...] with w [M, C / group, ...].
Value convolve(Emitter& emit, const Value& x, const Value& w, const op::ConvGeometry& geometry,
               const Shape& result, ElementType element);

}  // namespace superstep::target::stablehlo
