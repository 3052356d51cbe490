#include "superstep/op/rows/loss.h"

#include <fmt/format.h>

#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"

namespace superstep::op {
namespace {

std::string reduction_of(const Attributes& attributes) {
  const std::string reduction = attributes.text("reduction", "mean");
  require(reduction == "mean" || reduction == "sum" || reduction == "none",
          fmt::format("attribute 'reduction' is '{}', expected mean, sum or none", reduction));
  return reduction;
}

Shape without_classes(const Shape& scores) {
  std::vector<std::int64_t> extents = scores.extents();
  extents.erase(extents.begin() + 1);
  return Shape(extents);
}

ValueType loss_type(const InferContext& context) {
  require_floating(context, 0, "input");
  require_min_rank(context, 0, "input", 2);
  require_integer(context, 1, "target");
  const ValueType& scores = context.input(0);
  const Shape labels = without_classes(scores.shape);
  require_shape(context, 1, "target", labels);
  if (context.has(2)) {
    require_same_element(context, 2, "weight", 0, "input");
    require_shape(context, 2, "weight", {scores.shape[1]});
  }
  return {scores.element, reduction_of(context.attributes) == "none" ? labels : Shape{}};
}

std::vector<ValueType> infer_likelihood(const InferContext& context) { return {loss_type(context)}; }

std::vector<ValueType> infer_cross_entropy(const InferContext& context) {
  return {loss_type(context), context.input(0)};
}

// 0, 1, ..., C-1 along axis 1 of scores, in the labels' type.
Var class_numbers(Var scores, Var labels) {
  const std::int64_t classes = scores.shape()[1];
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(classes));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(scores.shape().rank()), 1);
  extents[1] = classes;
  const Tensor all = Tensor::from(Shape(extents), numbers).converted(labels.element());
  return scores.builder().constant(all);
}

// weights[class] where the class is the label, 0 elsewhere: [N, C, ...]. Ignored labels have no class.
Var label_weights(const DerivativeContext& context, Var like) {
  IndexRange classes{.count = like.shape()[1], .what = "input target"};
  if (context.attributes.has("ignore_index")) classes.besides = context.attributes.integer("ignore_index");
  const Var labels = indices_within(context.inputs[1], classes), column = unsqueeze(labels, {1});
  Var chosen = equal(column, class_numbers(like, labels));
  if (context.attributes.has("ignore_index")) {
    const auto ignored = static_cast<double>(context.attributes.integer("ignore_index"));
    chosen = logical_and(chosen, logical_not(equal(column, constant_like(column, ignored))));
  }
  Var weights = constant_like(like, 1);
  if (context.has(2)) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(like.shape().rank()), 1);
    extents[1] = like.shape()[1];
    weights = reshape(context.inputs[2], Shape(extents));
  }
  return where(chosen, weights, constant_like(like, 0));
}

Var reduced_loss(const DerivativeContext& context, Var log_probabilities) {
  const Var weights = label_weights(context, log_probabilities);
  const Var zero = constant_like(log_probabilities, 0);
  // A log probability of minus infinity counts only where it is asked for.
  const Var counted = where(equal(weights, zero), zero, log_probabilities);
  const Var losses = -reduce_sum(counted * weights, {1});
  const std::string reduction = reduction_of(context.attributes);
  if (reduction == "none") return losses;
  const Var total = reduce_sum(losses);
  return reduction == "sum" ? total : total / reduce_sum(weights);
}

std::vector<Var> decompose_likelihood(const DerivativeContext& context) {
  return {reduced_loss(context, context.inputs[0])};
}

std::vector<Var> decompose_cross_entropy(const DerivativeContext& context) {
  const Var log_probabilities = log_softmax(context.inputs[0], 1);
  return {reduced_loss(context, log_probabilities), log_probabilities};
}

Attributes to_attributes(const LossAttributes& attributes) {
  Attributes result{{"reduction", attributes.reduction}};
  if (attributes.ignore_index) result.set("ignore_index", *attributes.ignore_index);
  return result;
}

}  // namespace

Var negative_log_likelihood_loss(Var log_probabilities, Var labels, Var weights,
                                 const LossAttributes& attributes) {
  return log_probabilities.builder().node1("NegativeLogLikelihoodLoss", {log_probabilities, labels, weights},
                                           to_attributes(attributes));
}

Var softmax_cross_entropy_loss(Var scores, Var labels, Var weights, const LossAttributes& attributes) {
  return scores.builder().node1("SoftmaxCrossEntropyLoss", {scores, labels, weights},
                                to_attributes(attributes));
}

std::span<const Definition> loss_operators() {
  static const Definition definitions[] = {
      composite<decompose_likelihood>({"NegativeLogLikelihoodLoss", 13, 2, 3}, infer_likelihood,
                                      {.elements = Elements::floating,
                                       .work = WorkKind::normalization,
                                       .batch = batch::classification_loss,
                                       .attributes = "ignore_index reduction"}),
      composite<decompose_cross_entropy>({"SoftmaxCrossEntropyLoss", 13, 2, 3, 2}, infer_cross_entropy,
                                         {.elements = Elements::floating,
                                          .work = WorkKind::normalization,
                                          .batch = batch::classification_loss,
                                          .attributes = "ignore_index reduction"}),
  };
  return definitions;
}

}  // namespace superstep::op
