#include "superstep/op/activation.h"
#include "superstep/op/arithmetic.h"
#include "superstep/op/convolution.h"
#include "superstep/op/gather.h"
#include "superstep/op/loss.h"
#include "superstep/op/matmul.h"
#include "superstep/op/movement.h"
#include "superstep/op/normalization.h"
#include "superstep/op/pooling.h"
#include "superstep/op/reduction.h"
#include "superstep/op/softmax.h"
#include "superstep/op/unary.h"
#include "superstep/op/view.h"
#include "tests/op/support.h"

namespace superstep::op::test {
TEST(Smoke, Elementwise) {
  for (auto f : {unary(relu), unary(sigmoid), unary(tanh), unary(exp), unary(erf), unary(abs), unary(mish),
                 unary(softsign), unary(hard_swish), unary(softplus)})
    expect_second_order(f, {random_tensor({3, 4}, 1)});
  expect_second_order(OF(gelu(x[0])), {random_tensor({3, 4}, 1)});
  expect_second_order(OF(gelu(x[0], true)), {random_tensor({3, 4}, 1)});
  expect_second_order(OF(x[0] * x[1] + x[0] / (x[1] * x[1] + 1.0)),
                      {random_tensor({3, 4}, 1), random_tensor({4}, 2)});
  expect_second_order(OF(clip(x[0], -0.5, 0.5)), {random_tensor({3, 4}, 1)});
}
TEST(Smoke, Linear) {
  expect_second_order(OF(matmul(x[0], x[1])), {random_tensor({2, 3, 4}, 1), random_tensor({4, 5}, 2)});
  expect_second_order(OF(matmul(x[0], x[1])), {random_tensor({2, 3, 4}, 1), random_tensor({1, 4, 5}, 2)});
  expect_second_order(
      OF(conv(x[0], x[1], x[2], {.strides = {2, 1}, .dilations = {1, 2}, .pads = {1, 2, 0, 1}, .group = 2})),
      {random_tensor({2, 4, 6, 7}, 1), random_tensor({4, 2, 3, 2}, 2), random_tensor({4}, 3)});
  expect_second_order(OF(softmax(x[0])), {random_tensor({3, 4}, 1)});
  expect_second_order(OF(log_softmax(x[0], 0)), {random_tensor({3, 4}, 1)});
  expect_second_order(OF(max_pool(x[0], {.kernel_shape = {2, 2}, .strides = {2, 2}}).values),
                      {random_tensor({2, 3, 5, 4}, 1)});
  expect_second_order(OF(average_pool(x[0], {.kernel_shape = {2, 2}, .strides = {2, 2}, .ceil_mode = true})),
                      {random_tensor({2, 3, 5, 4}, 1)});
  expect_second_order(OF(global_average_pool(x[0])), {random_tensor({2, 3, 5, 4}, 1)});
  expect_second_order(OF(global_max_pool(x[0])), {random_tensor({2, 3, 5, 4}, 1)});
  expect_second_order(OF(layer_normalization(x[0], x[1], x[2])),
                      {random_tensor({2, 3}, 1), random_tensor({3}, 2), random_tensor({3}, 3)});
  expect_second_order(OF(softmax_cross_entropy_loss(x[0], x[1])),
                      {random_tensor({2, 3}, 1), i64({2}, {0, 2})});
  expect_second_order(OF(reduce_prod(x[0], {1})), {random_tensor({2, 3}, 1)});
  expect_second_order(OF(reduce_max(x[0], {1})), {random_tensor({2, 3}, 1)});
  expect_second_order(OF(slice(x[0], {5, 0}, {0, 4}, {0, 1}, {-2, 2})), {random_tensor({7, 5}, 1)});
  expect_second_order(OF(pad(x[0], {1, 2, 2, 1}, 3.0)), {random_tensor({7, 5}, 1)});
  expect_second_order(OF(pad(x[0], {1, 2, 2, 1}, 0, "reflect")), {random_tensor({7, 5}, 1)});
  expect_second_order(OF(gather(x[0], x[1], 1)), {random_tensor({7, 5}, 1), i64({3}, {0, 0, -1})});
}
}  // namespace superstep::op::test
