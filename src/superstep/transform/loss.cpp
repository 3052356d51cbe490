#include "superstep/transform/loss.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/op/arithmetic.h"
#include "superstep/op/gather.h"
#include "superstep/op/logic.h"
#include "superstep/op/reduction.h"
#include "superstep/op/softmax.h"
#include "superstep/op/unary.h"
#include "superstep/op/view.h"

namespace superstep::transform {
namespace {

using op::Var;

const std::vector<std::string> names = {"mse", "l1", "huber", "cross_entropy"};

Var huber(Var difference, double delta) {
  const Var size = op::abs(difference);
  const Var near = difference * difference * 0.5, far = (size - delta / 2) * delta;
  return op::reduce_mean(
      op::where(op::less_or_equal(size, size.builder().scalar(size.element(), delta)), near, far));
}

// Scores [N, C, ...], labels [N, ...]. Of plain operators, and divided by the static number of labels: the
// part of a batch that a target works on has a mean of its own.
Var cross_entropy(Var scores, Var labels) {
  const Var chosen = op::gather_elements(op::log_softmax(scores, 1), op::unsqueeze(labels, {1}), 1);
  return -op::reduce_mean(chosen);
}

Var of_difference(const LossTerm& term, Var difference) {
  if (term.kind == LossKind::l1) return op::reduce_mean(op::abs(difference));
  if (term.kind == LossKind::huber) return huber(difference, term.delta);
  return op::reduce_mean(difference * difference);
}

}  // namespace

const char* name_of(LossKind kind) { return names[static_cast<std::size_t>(kind)].c_str(); }

LossKind loss_kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<LossKind>(i);
  throw Error(ErrorCode::invalid_argument, "there is no such loss", std::string(name),
              unknown_name_hint(name, names));
}

graph::ValueType target_type(LossKind kind, const graph::ValueType& output) {
  if (kind != LossKind::cross_entropy) return output;
  if (output.shape.rank() < 2)
    throw Error(ErrorCode::bad_graph, fmt::format("cross_entropy takes scores [N, classes, ...], not {}",
                                                  graph::to_string(output)));
  std::vector<std::int64_t> extents = output.shape.extents();
  extents.erase(extents.begin() + 1);
  return {ElementType::i64, Shape(extents)};
}

Var build_loss(const LossTerm& term, Var output, Var target) {
  if (const graph::ValueType expected = target_type(term.kind, output.type()); target.type() != expected)
    throw Error(ErrorCode::bad_graph,
                fmt::format("the target of {} is {}, expected {}", name_of(term.kind),
                            graph::to_string(target.type()), graph::to_string(expected)));
  if (term.kind == LossKind::cross_entropy) return cross_entropy(output, target);
  return of_difference(term, output - target);
}

}  // namespace superstep::transform
