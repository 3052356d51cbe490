#include "superstep/op/rows/loss.h"
#include "superstep/op/training/optimizer.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

Case cross_entropy(const char* name, Shape scores, const Tensor& labels, bool weighted,
                   LossAttributes attributes) {
  Case result{"SoftmaxCrossEntropyLoss",
              name,
              OF(softmax_cross_entropy_loss(x[0], x[1], x.size() > 2 ? x[2] : Var(), attributes)),
              {random_tensor(scores, 101), labels}};
  if (weighted) result.inputs.push_back(uniform_tensor({scores[1]}, 102, 0.5, 2));
  return result;
}

Case likelihood(const char* name, Shape scores, const Tensor& labels, bool weighted,
                LossAttributes attributes) {
  Case result = cross_entropy(name, scores, labels, weighted, {});
  result.op = "NegativeLogLikelihoodLoss";
  result.function = OF(negative_log_likelihood_loss(x[0], x[1], x.size() > 2 ? x[2] : Var(), attributes));
  return result;
}

std::vector<Var> both_outputs(Builder& b, std::span<const Var> x) {
  return b.node("SoftmaxCrossEntropyLoss", x, {}, 2);
}

Case descent(const char* name, SgdAttributes attributes) {
  Case result{
      "superstep.Sgd", name, {}, {random_tensor({2, 3}, 103), random_tensor({2, 3}, 104), f64({}, {0.1})}};
  if (attributes.momentum == 0) {
    result.function = OF(sgd(x[0], x[1], x[2], {}, attributes).parameter);
    return result;
  }
  result.inputs.push_back(random_tensor({2, 3}, 105));
  result.function =
      OF(sgd(x[0], x[1], x[2], x[3], attributes).parameter, sgd(x[0], x[1], x[2], x[3], attributes).buffer);
  return result;
}

Case moments(const char* name, std::int64_t step, AdamAttributes attributes) {
  const Function function = [attributes](Builder&, std::span<const Var> x) {
    const AdamStep next = adam(x[0], x[1], x[2], x[3], x[4], x[5], attributes);
    return std::vector<Var>{next.parameter, next.m, next.v};
  };
  return {"superstep.Adam",
          name,
          function,
          {random_tensor({2, 3}, 106), random_tensor({2, 3}, 107), random_tensor({2, 3}, 108),
           uniform_tensor({2, 3}, 109, 0.5, 2), i64({}, {step}), f64({}, {0.01})}};
}

Case largest(const char* name, std::int64_t step, AdamaxAttributes attributes) {
  Case result = moments(name, step, {});
  result.op = "superstep.Adamax";
  result.function = [attributes](Builder&, std::span<const Var> x) {
    const AdamaxStep next = adamax(x[0], x[1], x[2], x[3], x[4], x[5], attributes);
    return std::vector<Var>{next.parameter, next.m, next.u};
  };
  return result;
}

Case scaled(const char* name, std::int64_t step, LambAttributes attributes) {
  Case result = moments(name, step, {});
  result.op = "superstep.Lamb";
  result.function = [attributes](Builder&, std::span<const Var> x) {
    const AdamStep next = lamb(x[0], x[1], x[2], x[3], x[4], x[5], attributes);
    return std::vector<Var>{next.parameter, next.m, next.v};
  };
  return result;
}

Case squares(const char* name, RmspropAttributes attributes) {
  Case result{"superstep.RMSProp",
              name,
              {},
              {random_tensor({2, 3}, 111), random_tensor({2, 3}, 115), uniform_tensor({2, 3}, 113, 0.5, 2),
               f64({}, {0.1})}};
  if (attributes.momentum == 0) {
    result.function = [attributes](Builder&, std::span<const Var> x) {
      const RmspropStep next = rmsprop(x[0], x[1], x[2], x[3], {}, attributes);
      return std::vector<Var>{next.parameter, next.v};
    };
    return result;
  }
  result.inputs.push_back(random_tensor({2, 3}, 114));
  result.function = [attributes](Builder&, std::span<const Var> x) {
    const RmspropStep next = rmsprop(x[0], x[1], x[2], x[3], x[4], attributes);
    return std::vector<Var>{next.parameter, next.v, next.buffer};
  };
  return result;
}

}  // namespace

std::vector<Case> training_cases() {
  const Tensor labels = i64({4}, {0, 2, 1, 2}), pixels = i64({2, 2, 2}, {0, 2, 1, 1, -1, 0, 2, 2});
  return {
      cross_entropy("mean", {4, 3}, labels, false, {}),
      cross_entropy("weighted mean", {4, 3}, labels, true, {}),
      cross_entropy("sum", {4, 3}, labels, true, {.reduction = "sum"}),
      cross_entropy("pixels, some ignored", {2, 3, 2, 2}, pixels, true,
                    {.reduction = "mean", .ignore_index = -1}),
      cross_entropy("none", {2, 3, 2, 2}, pixels, false, {.reduction = "none", .ignore_index = -1}),
      {"SoftmaxCrossEntropyLoss", "both outputs", both_outputs, {random_tensor({4, 3}, 110), labels}},
      likelihood("mean", {4, 3}, labels, false, {}),
      likelihood("weighted, ignoring a class", {4, 3}, labels, true,
                 {.reduction = "mean", .ignore_index = 2}),
      likelihood("none", {2, 3, 2, 2}, pixels, true, {.reduction = "none", .ignore_index = -1}),
      descent("plain", {}),
      descent("weight decay", {.weight_decay = 0.1}),
      descent("momentum", {.momentum = 0.9, .weight_decay = 0.1}),
      descent("Nesterov", {.momentum = 0.9, .nesterov = true}),
      moments("first step", 0, {}),
      moments("later step, weight decay", 7, {.weight_decay = 0.1}),
      moments("decoupled", 3,
              {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .decoupled = true}),
      largest("first step", 0, {}),
      largest("later step, weight decay", 7, {.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}),
      scaled("first step", 0, {}),
      scaled("later step, weight decay", 7, {.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}),
      squares("plain", {}),
      squares("momentum, weight decay", {.decay = 0.8, .momentum = 0.9, .weight_decay = 0.1}),
  };
}

}  // namespace superstep::op::test
