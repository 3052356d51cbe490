#include "superstep/transform/training/loss.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/transform/training/ctc.h"
#include "superstep/transform/training/loss_values.h"

namespace superstep::transform {
namespace {

using op::Var;

const std::vector<std::string> names = {"mse",
                                        "l1",
                                        "huber",
                                        "cross_entropy",
                                        "token_cross_entropy",
                                        "value",
                                        "dice",
                                        "smooth_l1",
                                        "log_cosh",
                                        "bce",
                                        "bce_with_logits",
                                        "focal",
                                        "nll",
                                        "kl_div",
                                        "poisson_nll",
                                        "gaussian_nll",
                                        "cosine",
                                        "tversky",
                                        "triplet_margin",
                                        "ctc"};

Var smallest(Var like) { return like.builder().scalar(like.element(), 1e-30); }

// Of plain operators, and divided by the static number of labels: the part of a batch that a target works on
// has a mean of its own.
Var cross_entropy(Var scores, Var labels, double smoothing) {
  const Var logarithms = op::log_softmax(scores, 1);
  const Var chosen = -op::reduce_mean(op::gather_elements(logarithms, op::unsqueeze(labels, {1}), 1));
  if (smoothing == 0) return chosen;
  return chosen * (1 - smoothing) - op::reduce_mean(logarithms) * smoothing;
}

// Labels below zero are not scored: the first class is looked up for them and then left out.
Var token_cross_entropy(Var scores, Var labels) {
  const std::int64_t last = scores.shape().rank() - 1;
  const Var zero = labels.builder().scalar(labels.element(), 0);
  const Var scored = op::unsqueeze(op::less_or_equal(zero, labels), {last});
  const Var chosen =
      op::gather_elements(op::log_softmax(scores, last), op::unsqueeze(op::max(labels, zero), {last}), last);
  return -op::reduce_mean(op::where(scored, chosen, scores.builder().scalar(scores.element(), 0)));
}

// That no constant behind it depends on the batch's size is said to over_parts.h.
Var sum_of_batch(Var x) {
  return x.builder().node1("ReduceSum", {x},
                           {{"keepdims", std::int64_t{0}}, {"over_parts", std::int64_t{1}}});
}

Var dice(Var output, Var target) {
  const Var both = sum_of_batch(output * target), either = sum_of_batch(output) + sum_of_batch(target);
  return 1.0 - (both * 2.0 + 1.0) / (either + 1.0);
}

Var tversky(const LossTerm& term, Var output, Var target) {
  const Var both = sum_of_batch(output * target);
  const Var invented = sum_of_batch(output * (1.0 - target)), missed = sum_of_batch((1.0 - output) * target);
  const Var all = both + invented * term.alpha.value_or(0.5) + missed * term.beta.value_or(0.5);
  return 1.0 - (both + 1.0) / (all + 1.0);
}

// Weights of samples along the first axis of what is averaged.
Var weighted(Var values, Var weights) {
  std::vector<std::int64_t> others;
  for (std::int64_t axis = 1; axis < values.shape().rank(); ++axis) others.push_back(axis);
  return values * (others.empty() ? weights : op::unsqueeze(weights, others));
}

// The mean of `values`; where they count differently, divided by the sum of what they count over the batch. A
// batch of which nothing counts gives zero.
Var averaged(Var values, Var counts, const LossExtras& extras) {
  if (extras.mask.valid()) {
    counts = counts.valid() ? counts * extras.mask : extras.mask;
    values = values * extras.mask;
  }
  if (extras.sample_weights.valid()) values = weighted(values, extras.sample_weights);
  if (!counts.valid()) return op::reduce_mean(values);
  return sum_of_batch(values) / op::max(sum_of_batch(counts), smallest(values));
}

Var of_labels(const LossTerm& term, Var output, Var labels, const LossExtras& extras) {
  const bool plain =
      term.class_weights.empty() && !term.ignored && !extras.mask.valid() && !extras.sample_weights.valid();
  if (plain && term.kind == LossKind::cross_entropy) return cross_entropy(output, labels, term.smoothing);
  const LabelValues each =
      label_values(term, term.kind == LossKind::nll ? output : op::log_softmax(output, 1), labels);
  return averaged(each.values, each.counts, extras);
}

// Where the output has a row for each sample, the mark means nothing.
Var value(const LossTerm& term, Var output) {
  if (!is_floating(output.element()))
    throw Error(ErrorCode::bad_graph,
                fmt::format("a loss is a floating-point number, not {}", graph::to_string(output.type())),
                term.output.empty() ? "the only output" : fmt::format("output '{}'", term.output));
  const Var loss = op::of_whole_batch(output);
  return loss.shape().rank() == 0 ? loss : op::reduce_mean(loss);
}

}  // namespace

bool needs_target(LossKind kind) { return kind != LossKind::value && kind != LossKind::triplet_margin; }

bool takes_labels(LossKind kind) {
  return kind == LossKind::cross_entropy || kind == LossKind::token_cross_entropy || kind == LossKind::nll ||
         kind == LossKind::ctc;
}

int class_axis(LossKind kind, const Shape& scores) {
  return kind == LossKind::token_cross_entropy || kind == LossKind::ctc ? scores.rank() - 1 : 1;
}

bool has_axes_for(LossKind kind, const Shape& output) {
  if (kind == LossKind::ctc) return output.rank() == 3;
  return output.rank() >= (takes_labels(kind) || kind == LossKind::triplet_margin ? 2 : 0);
}

bool is_of_whole_batch(LossKind kind) { return kind == LossKind::dice || kind == LossKind::tversky; }

const char* name_of(LossKind kind) { return names[static_cast<std::size_t>(kind)].c_str(); }

LossKind loss_kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<LossKind>(i);
  throw Error(ErrorCode::invalid_argument, "there is no such loss", std::string(name),
              unknown_name_hint(name, names));
}

graph::ValueType target_type(const LossTerm& term, const graph::ValueType& output) {
  const LossKind kind = term.kind;
  if (!takes_labels(kind)) return output;
  if (!has_axes_for(kind, output.shape)) {
    const char* scores = kind == LossKind::ctc                   ? "[N, frames, classes]"
                         : kind == LossKind::token_cross_entropy ? "[N, ..., classes]"
                                                                 : "[N, classes, ...]";
    throw Error(ErrorCode::bad_graph,
                fmt::format("{} takes scores {}, not {}", name_of(kind), scores, graph::to_string(output)));
  }
  std::vector<std::int64_t> extents = output.shape.extents();
  extents.erase(extents.begin() + class_axis(kind, output.shape));
  if (kind == LossKind::ctc) extents[1] = term.longest.value_or(extents[1]);
  return {ElementType::i64, Shape(extents)};
}

graph::ValueType mask_type(const LossTerm& term, const graph::ValueType& output) {
  const LossKind kind = term.kind;
  std::vector<std::int64_t> extents = output.shape.extents();
  if (kind == LossKind::kl_div || kind == LossKind::ctc)
    extents.resize(std::min<std::size_t>(extents.size(), 1));
  else if (takes_labels(kind))
    return {output.element, target_type(term, output).shape};
  if (kind == LossKind::cosine && extents.size() > 1) extents.erase(extents.begin() + 1);
  if (kind == LossKind::triplet_margin && !extents.empty()) extents.pop_back();
  return {output.element, Shape(extents)};
}

graph::ValueType sample_weights_type(const graph::ValueType& output) {
  return {output.element, Shape{output.shape.rank() == 0 ? 1 : output.shape[0]}};
}

graph::ValueType lengths_type(const graph::ValueType& output) {
  return {ElementType::i64, sample_weights_type(output).shape};
}

Var build_loss(const LossTerm& term, Var output, Var target, const LossExtras& extras) {
  if (term.kind == LossKind::value) return value(term, output);
  if (term.kind == LossKind::triplet_margin)
    return averaged(triplet_values(term, output, extras.positive, extras.negative), {}, extras);
  if (const graph::ValueType expected = target_type(term, output.type()); target.type() != expected)
    throw Error(ErrorCode::bad_graph,
                fmt::format("the target of {} is {}, expected {}", name_of(term.kind),
                            graph::to_string(target.type()), graph::to_string(expected)));
  if (term.kind == LossKind::token_cross_entropy) return token_cross_entropy(output, target);
  if (term.kind == LossKind::ctc)
    return averaged(ctc_values(term, output, target, {extras.input_lengths, extras.target_lengths}), {},
                    extras);
  if (takes_labels(term.kind)) return of_labels(term, output, target, extras);
  if (term.kind == LossKind::dice) return dice(output, target);
  if (term.kind == LossKind::tversky) return tversky(term, output, target);
  return averaged(loss_values(term, output, target, extras.variance), {}, extras);
}

}  // namespace superstep::transform
