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

namespace superstep::transform {
namespace {

using op::Var;

const std::vector<std::string> names = {"mse",   "l1",  "huber", "cross_entropy", "token_cross_entropy",
                                        "value", "dice"};

Var huber(Var difference, double delta) {
  const Var size = op::abs(difference);
  const Var near = difference * difference * 0.5, far = (size - delta / 2) * delta;
  return op::reduce_mean(
      op::where(op::less_or_equal(size, size.builder().scalar(size.element(), delta)), near, far));
}

// Scores [N, C, ...], labels [N, ...]. Of plain operators, and divided by the static number of labels: the
// part of a batch that a target works on has a mean of its own.
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

// Where the output has a row for each sample, the mark means nothing.
Var value(const LossTerm& term, Var output) {
  if (!is_floating(output.element()))
    throw Error(ErrorCode::bad_graph,
                fmt::format("a loss is a floating-point number, not {}", graph::to_string(output.type())),
                term.output.empty() ? "the only output" : fmt::format("output '{}'", term.output));
  const Var loss = op::of_whole_batch(output);
  return loss.shape().rank() == 0 ? loss : op::reduce_mean(loss);
}

Var of_difference(const LossTerm& term, Var difference) {
  if (term.kind == LossKind::l1) return op::reduce_mean(op::abs(difference));
  if (term.kind == LossKind::huber) return huber(difference, term.delta);
  return op::reduce_mean(difference * difference);
}

}  // namespace

bool needs_target(LossKind kind) { return kind != LossKind::value; }

const char* name_of(LossKind kind) { return names[static_cast<std::size_t>(kind)].c_str(); }

LossKind loss_kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<LossKind>(i);
  throw Error(ErrorCode::invalid_argument, "there is no such loss", std::string(name),
              unknown_name_hint(name, names));
}

graph::ValueType target_type(LossKind kind, const graph::ValueType& output) {
  if (kind == LossKind::token_cross_entropy) {
    if (output.shape.rank() < 2)
      throw Error(ErrorCode::bad_graph,
                  fmt::format("token_cross_entropy takes scores [N, ..., classes], not {}",
                              graph::to_string(output)));
    return {ElementType::i64, Shape(std::vector<std::int64_t>(output.shape.begin(), output.shape.end() - 1))};
  }
  if (kind != LossKind::cross_entropy) return output;
  if (output.shape.rank() < 2)
    throw Error(ErrorCode::bad_graph, fmt::format("cross_entropy takes scores [N, classes, ...], not {}",
                                                  graph::to_string(output)));
  std::vector<std::int64_t> extents = output.shape.extents();
  extents.erase(extents.begin() + 1);
  return {ElementType::i64, Shape(extents)};
}

Var build_loss(const LossTerm& term, Var output, Var target) {
  if (term.kind == LossKind::value) return value(term, output);
  if (const graph::ValueType expected = target_type(term.kind, output.type()); target.type() != expected)
    throw Error(ErrorCode::bad_graph,
                fmt::format("the target of {} is {}, expected {}", name_of(term.kind),
                            graph::to_string(target.type()), graph::to_string(expected)));
  if (term.kind == LossKind::cross_entropy) return cross_entropy(output, target, term.smoothing);
  if (term.kind == LossKind::token_cross_entropy) return token_cross_entropy(output, target);
  if (term.kind == LossKind::dice) return dice(output, target);
  return of_difference(term, output - target);
}

}  // namespace superstep::transform
