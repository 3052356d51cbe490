// Pooling over sliding windows in one to three dimensions: x [N, C, spatial...].
#pragma once

#include <string>

#include "superstep/op/core/definition.h"
#include "superstep/op/window/window.h"

namespace superstep::op {

struct PoolAttributes {
  std::vector<std::int64_t> kernel_shape;
  std::vector<std::int64_t> strides = {}, dilations = {};  // {}: all 1
  std::vector<std::int64_t> pads = {};                     // begins, then ends; {}: none
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;          // round the number of outputs up
  bool count_include_pad = false;  // average pooling: padding counts as elements
};

// The largest element of each window; padding never wins. `indices` (i64) is its position in the whole of
// x, flattened; the first of equals.
struct MaxPooled {
  Var values, indices;
};
MaxPooled max_pool(Var x, const PoolAttributes& attributes);
Var average_pool(Var x, const PoolAttributes& attributes);
Var lp_pool(Var x, const PoolAttributes& attributes, std::int64_t p = 2);  // (sum |x|^p)^(1/p)
Var global_average_pool(Var x);
Var global_max_pool(Var x);
Var global_lp_pool(Var x, std::int64_t p = 2);

// superstep.MaxPoolGradient: `dy` added into zeros of `x_shape` (attribute input_shape) at `indices`.
Var max_pool_gradient(Var dy, Var indices, const Shape& x_shape);
// superstep.AveragePoolGradient: the transpose of AveragePool with these attributes, plus input_shape.
Var average_pool_gradient(Var dy, const Shape& x_shape, const Attributes& attributes);

// The number of elements that an average divides by, for each output position.
std::vector<double> average_counts(const Attributes& attributes, const std::vector<Window>& windows);

std::span<const Definition> max_pooling_operators();
std::span<const Definition> average_pooling_operators();
std::span<const Definition> global_pooling_operators();

}  // namespace superstep::op
