#include "superstep/op/elementwise/activation.h"

#include "superstep/op/elementwise/arithmetic.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {

std::vector<Case> activation_cases() {
  const Tensor a = random_tensor({4, 5}, 21, 1.5), wide = random_tensor({4, 5}, 22, 4);
  const Tensor slope = random_tensor({5}, 23), low = f64({}, {-0.5}), high = f64({1}, {0.75});
  return {
      {"Relu", "normal numbers", OF(relu(x[0])), {a}},
      {"Relu", "integers", OF(relu(x[0])), {i64({3}, {-2, 0, 3})}, Smooth::no},
      {"LeakyRelu", "default", OF(leaky_relu(x[0])), {a}},
      {"LeakyRelu", "slope 0.3", OF(leaky_relu(x[0], 0.3)), {a}},
      {"Sigmoid", "normal numbers", OF(sigmoid(x[0])), {a}},
      {"Tanh", "normal numbers", OF(tanh(x[0])), {a}},
      {"Softplus", "wide", OF(softplus(x[0])), {wide}},
      {"Softsign", "normal numbers", OF(softsign(x[0])), {a}},
      {"Elu", "default", OF(elu(x[0])), {a}},
      {"Elu", "scaled", OF(elu(x[0], 2.5)), {a}},
      {"Selu", "default", OF(selu(x[0])), {a}},
      {"Celu", "scaled", OF(celu(x[0], 1.5)), {a}},
      {"HardSigmoid", "default", OF(hard_sigmoid(x[0])), {wide}},
      {"HardSigmoid", "steep", OF(hard_sigmoid(x[0], 0.5, 0.4)), {a}},
      {"HardSwish", "wide", OF(hard_swish(x[0])), {wide}},
      {"Gelu", "exact", OF(gelu(x[0])), {a}},
      {"Gelu", "tanh", OF(gelu(x[0], true)), {a}},
      {"Mish", "normal numbers", OF(mish(x[0])), {a}},
      {"Swish", "default", OF(swish(x[0])), {a}},
      {"Swish", "scaled", OF(swish(x[0], 1.7)), {a}},
      {"ThresholdedRelu", "default", OF(thresholded_relu(x[0])), {wide}},
      {"Shrink", "soft", OF(shrink(x[0], 0.5, 0.5)), {a}},
      {"Clip", "both", OF(clip(x[0], x[1], x[2])), {a, low, high}},
      {"Clip", "below", OF(clip(x[0], x[1], Var())), {a, low}},
      {"Clip", "above", OF(clip(x[0], Var(), x[1])), {a, high}},
      {"Clip", "limits that cross", OF(clip(x[0], x[1], x[2])), {a, high, low}},
      {"Clip",
       "integers",
       OF(clip(x[0], x[1], x[2])),
       {i64({3}, {-5, 1, 9}), i64({}, {0}), i64({}, {4})},
       Smooth::no},
      {"PRelu", "a slope a column", OF(prelu(x[0], x[1])), {a, slope}},
      {"PRelu", "one slope", OF(prelu(x[0], x[1])), {a, f64({1}, {0.2})}},
  };
}

}  // namespace superstep::op::test
