#include "superstep/workload/attention.h"

#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/softmax.h"

namespace superstep::workload {

Var split_heads(Var x, std::int64_t heads) {
  const Shape shape = x.shape();
  return op::transpose(op::reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Var attention(Layers& layers, Var q, Var k, Var v, std::optional<Var> hidden, double dropped) {
  const Shape shape = q.shape();
  const Var scaled = q * (1 / std::sqrt(static_cast<double>(shape[3])));
  Var scores = op::matmul(scaled, op::swap_axes(k, 2, 3));
  if (hidden) scores = scores + *hidden;
  Var weights = op::softmax(scores, -1);
  if (dropped > 0) weights = layers.dropout(weights, "weights.dropout", dropped);
  const Var mixed = op::transpose(op::matmul(weights, v), {0, 2, 1, 3});
  return op::reshape(mixed, {shape[0], shape[2], shape[1] * shape[3]});
}

}  // namespace superstep::workload
