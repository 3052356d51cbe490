// Convolution (cross-correlation, as in all of machine learning) in one to three dimensions, its two
// gradients, which are operators too, and pooling's common attributes.
//
// Layouts: x [N, C, spatial...], w [M, C/group, kernel...], y [N, M, spatial...].
#pragma once

#include <string>

#include "superstep/op/core/definition.h"
#include "superstep/op/window/window.h"

namespace superstep::op {

struct ConvAttributes {
  std::vector<std::int64_t> strides = {}, dilations = {};  // {}: all 1
  std::vector<std::int64_t> pads = {};                     // begins, then ends; {}: none
  std::int64_t group = 1;
  std::string auto_pad = "NOTSET";  // or SAME_UPPER, SAME_LOWER, VALID: then without pads
};

// y[n,m,o] = bias[m] + sum over c, k of x[n, c, o * stride - pad + k * dilation] w[m,c,k].
Var conv(Var x, Var w, Var bias = {}, const ConvAttributes& attributes = {});

struct ConvTransposeAttributes : ConvAttributes {
  std::vector<std::int64_t> output_padding = {};  // elements added at the end of each axis of the result
  std::vector<std::int64_t> output_shape = {};    // spatial; then pads follow from it
};

// The transpose of conv in its input: x [N, C, ...], w [C, M/group, kernel...], y [N, M, ...].
Var conv_transpose(Var x, Var w, Var bias = {}, const ConvTransposeAttributes& attributes = {});

// superstep.ConvWeightGradient: the cotangent of conv's weights [M, C/group, kernel...] from its input and
// the cotangent of its result. Attributes: those of Conv, with kernel_shape.
Var conv_weight_gradient(Var x, Var dy, const std::vector<std::int64_t>& kernel_shape,
                         const Attributes& conv_attributes);

// The cotangent of conv's input: a ConvTranspose that gives exactly the input's extents.
Var conv_input_gradient(Var dy, Var w, const Shape& x_shape, const Attributes& conv_attributes);

// conv that reads each tap at its regular place plus an offset, by linear interpolation, zero outside x.
// offset [N, offset_group * taps * spatial axes, output...], mask (optional, a factor a tap) [N, offset_group
// * taps, output...]: an offset group of channels moves together.
Var deformable_conv(Var x, Var w, Var offset, Var bias = {}, Var mask = {}, std::int64_t offset_group = 1,
                    const ConvAttributes& attributes = {});

// A convolution made explicit, as kernels want it.
struct ConvGeometry {
  std::int64_t batch = 1, group = 1;
  std::int64_t in_per_group = 1, out_per_group = 1;  // channels of x and of y in a group
  std::vector<Window> windows;                       // one for each spatial axis
};
ConvGeometry conv_geometry(const Attributes& attributes, const Shape& x, const Shape& w);
// The convolution that a ConvTranspose transposes: its x is the node's output, its y the node's input.
ConvGeometry conv_transpose_geometry(const Attributes& attributes, const Shape& x, const Shape& w);
// That of an operator of this kind, by its inputs and its result.
ConvGeometry geometry_of(ProductKind kind, const Attributes& attributes, const Shape& first,
                         const Shape& second, const Shape& result);

inline bool is_convolution(ProductKind kind) {
  return kind == ProductKind::convolution || kind == ProductKind::transposed_convolution ||
         kind == ProductKind::weight_gradient;
}
inline bool is_matrix_product(ProductKind kind) {
  return kind == ProductKind::matrices || kind == ProductKind::scaled_matrices;
}
// Whether a matrix product takes its left operand transposed.
inline bool transposes_left(ProductKind kind, const Attributes& attributes) {
  return kind == ProductKind::scaled_matrices && attributes.integer("transA", 0) != 0;
}
// Evaluates the operator of this kind on a geometry that attributes need not be able to say: windows may lie
// where padding would be negative, and what they do not reach is zero.
void evaluate_convolution(ProductKind kind, const ConvGeometry& geometry, const EvaluateContext& context);
double conv_flops(const ConvGeometry& geometry);  // 2 a multiply-accumulate; padding counts

std::span<const Definition> convolution_operators();
std::span<const Definition> deformable_convolution_operators();

}  // namespace superstep::op
