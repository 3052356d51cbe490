// The public gradient checker: derivative rules against finite differences, and against each other.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/op/core/builder.h"

namespace superstep::op {

// A differentiable function as a builder of graphs: given its inputs, its outputs.
using Function = std::function<std::vector<Var>(Builder& builder, std::span<const Var> inputs)>;

struct GradientCheckOptions {
  double step = 1e-5;       // of the central difference, times max(1, |x|)
  double tolerance = 1e-6;  // relative, on directional derivatives in f64
  int directions = 3;       // random directions tried
  std::uint64_t seed = 1;
  bool second_order = false;  // also the Hessian-vector product against differences of the gradient
};

// Checks at the point `inputs` (f64; integer inputs are held fixed), along random directions:
//   forward mode  J v             against (f(x + h v) - f(x - h v)) / 2h
//   reverse mode  w . J v = v . J'w   (the transpose, or dot-product, test)
// The error says which test failed, on which input, with both numbers. To see that a check can fail, give
// it a function whose rule is wrong: tests/op does (negative controls).
Status check_gradients(const Function& function, std::span<const Tensor> inputs,
                       GradientCheckOptions options = {});

}  // namespace superstep::op
