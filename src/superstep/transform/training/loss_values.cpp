#include "superstep/transform/training/loss_values.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::transform {
namespace {

using op::Var;

Var constant_like(Var x, double value) { return x.builder().scalar(x.element(), value); }

Var huber(Var difference, double delta) {
  const Var size = op::abs(difference);
  const Var near = difference * difference * 0.5, far = (size - delta / 2) * delta;
  return op::where(op::less_or_equal(size, constant_like(size, delta)), near, far);
}

// |x| + log(1 + e^(-2 |x|)) - log 2, which does not overflow.
Var log_cosh(Var difference) {
  const Var size = op::abs(difference);
  return size + op::softplus(size * -2.0) - std::numbers::ln2;
}

// Ends at -100, as PyTorch's: a certainty that is wrong costs much, but not infinitely much.
Var bounded_log(Var x) {
  const Var none = op::less_or_equal(x, constant_like(x, 0));
  return op::where(none, constant_like(x, -100), op::log(op::where(none, constant_like(x, 1), x)));
}

Var bce(Var y, Var t) { return -(t * bounded_log(y) + (1.0 - t) * bounded_log(1.0 - y)); }

// -log sigmoid(y) is softplus(-y), -log(1 - sigmoid(y)) is softplus(y) = y + softplus(-y).
Var bce_with_logits(Var y, Var t, double positive_weight) {
  if (positive_weight == 1) return op::softplus(y) - t * y;
  return (1.0 - t) * y + ((t * (positive_weight - 1)) + 1.0) * op::softplus(-y);
}

Var focal(const LossTerm& term, Var y, Var t) {
  const Var p = op::sigmoid(y);
  const Var missed = p * (1.0 - t) + (1.0 - p) * t;
  Var values = bce_with_logits(y, t, 1);
  if (term.gamma != 0) values = values * op::pow(missed, term.gamma);
  const double alpha = term.alpha.value_or(0.25);
  return alpha < 0 ? values : values * (t * (2 * alpha - 1) + (1 - alpha));
}

// 0 log 0 is 0: the smallest number in its place gives that.
Var kl_div(Var y, Var t) {
  const Var terms = t * (op::log(op::max(t, constant_like(t, 1e-30))) - y);
  op::Axes axes;
  for (std::int64_t axis = 1; axis < y.shape().rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? terms : op::reduce_sum(terms, axes);
}

Var gaussian_nll(Var y, Var t, Var variance) {
  const Var v = op::max(variance, constant_like(variance, 1e-6)), away = y - t;
  return (op::log(v) + away * away / v) * 0.5;
}

// Lengths are 1e-8 at least, as PyTorch's are.
Var cosine(Var y, Var t) {
  const op::Axes axes = {y.shape().rank() > 1 ? 1 : 0};
  const auto length = [&](Var x) {
    return op::sqrt(op::max(op::reduce_sum_square(x, axes), constant_like(x, 1e-16)));
  };
  return 1.0 - op::reduce_sum(y * t, axes) / (length(y) * length(t));
}

// The length of x - y along the last axis. PyTorch adds 1e-6 to every difference, so that the slope is finite
// where there is none.
Var distance(Var x, Var y, double power) {
  const Var away = x - y + 1e-6;
  const op::Axes last = {x.shape().rank() - 1};
  if (power == 1) return op::reduce_l1(away, last);
  if (power == 2) return op::reduce_l2(away, last);
  return op::pow(op::reduce_sum(op::pow(op::abs(away), power), last), 1 / power);
}

Tensor class_weights(const LossTerm& term, Var log_probabilities) {
  const std::int64_t classes = log_probabilities.shape()[1];
  if (static_cast<std::int64_t>(term.class_weights.size()) != classes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there are {} weights of {} classes", term.class_weights.size(), classes),
                fmt::format("{} of output '{}'", name_of(term.kind), term.output), "give one for each class");
  Tensor table(log_probabilities.element(), {classes});
  for (std::int64_t c = 0; c < classes; ++c) table.set(c, term.class_weights[static_cast<std::size_t>(c)]);
  return table;
}

Tensor along_classes(const Tensor& table, std::int64_t rank) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[1] = table.element_count();
  return table.reshaped(Shape(extents));
}

}  // namespace

Var loss_values(const LossTerm& term, Var y, Var t, Var variance) {
  switch (term.kind) {
    case LossKind::mse: {
      const Var away = y - t;
      return away * away;
    }
    case LossKind::l1: return op::abs(y - t);
    case LossKind::huber: return huber(y - t, term.delta);
    case LossKind::smooth_l1: return huber(y - t, term.delta) / term.delta;
    case LossKind::log_cosh: return log_cosh(y - t);
    case LossKind::bce: return bce(y, t);
    case LossKind::bce_with_logits: return bce_with_logits(y, t, term.positive_weight);
    case LossKind::focal: return focal(term, y, t);
    case LossKind::kl_div: return kl_div(y, t);
    case LossKind::poisson_nll: return op::exp(y) - t * y;
    case LossKind::gaussian_nll: return gaussian_nll(y, t, variance);
    case LossKind::cosine: return cosine(y, t);
    default: break;
  }
  throw Error(ErrorCode::internal, fmt::format("{} averages no values", name_of(term.kind)));
}

Var triplet_values(const LossTerm& term, Var anchor, Var positive, Var negative) {
  const auto require_like_anchor = [&](const char* what, Var other) {
    if (other.type() == anchor.type() && has_axes_for(term.kind, anchor.shape())) return;
    throw Error(
        ErrorCode::bad_graph,
        fmt::format("triplet_margin takes three outputs [N, ..., features] of one shape, not an anchor "
                    "{} and a {} {}",
                    graph::to_string(anchor.type()), what, graph::to_string(other.type())));
  };
  require_like_anchor("positive", positive);
  require_like_anchor("negative", negative);
  Var far = distance(anchor, negative, term.power);
  if (term.swap) far = op::min(far, distance(positive, negative, term.power));
  const Var values = distance(anchor, positive, term.power) - far + term.margin;
  const Var zero = constant_like(values, 0);
  return op::where(op::greater_or_equal(values, zero), values, zero);
}

LabelValues label_values(const LossTerm& term, Var log_probabilities, Var labels) {
  const ElementType type = log_probabilities.element();
  LabelValues each;
  Var ignored;
  if (term.ignored) {  // the first class is looked up for it
    ignored = op::equal(labels, constant_like(labels, static_cast<double>(*term.ignored)));
    labels = op::where(ignored, constant_like(labels, 0), labels);
    each.counts = 1.0 - op::cast(ignored, type);
  }
  each.values = -op::squeeze(op::gather_elements(log_probabilities, op::unsqueeze(labels, {1}), 1), {1});
  Var spread = -log_probabilities;
  if (!term.class_weights.empty()) {
    const Tensor table = class_weights(term, log_probabilities);
    const Var own = op::gather(labels.builder().constant(table), labels);
    each.values = each.values * own;
    each.counts = each.counts.valid() ? each.counts * own : own;
    spread = spread * labels.builder().constant(along_classes(table, log_probabilities.shape().rank()));
  }
  if (term.smoothing > 0)
    each.values = each.values * (1 - term.smoothing) + op::reduce_mean(spread, {1}) * term.smoothing;
  if (ignored.valid()) each.values = op::where(ignored, constant_like(each.values, 0), each.values);
  return each;
}

}  // namespace superstep::transform
