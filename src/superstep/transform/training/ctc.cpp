#include "superstep/transform/training/ctc.h"

#include <fmt/format.h>

#include <limits>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"

namespace superstep::transform {
namespace {

using op::Var;

// The logarithm of zero: finite, so that differences of two have a value, and far from what any path of
// finite scores sums to. What is below `next_to_nothing` has gone through it.
constexpr double nothing = -1e30, next_to_nothing = -1e29;

Var constant_like(Var x, double value) { return x.builder().scalar(x.element(), value); }

// 0, 1, ... as a row [1, count].
Var positions(Var like, std::int64_t count) {
  Tensor row(like.element(), {1, count});
  for (std::int64_t i = 0; i < count; ++i) row.set(i, static_cast<double>(i));
  return like.builder().constant(row);
}

void require_fitting(const LossTerm& term, const Shape& scores) {
  const auto where = fmt::format("ctc of output '{}'", term.output);
  if (term.blank >= scores[2])
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("blank is {}, and there are {} classes: 0 to {}", term.blank, scores[2], scores[2] - 1),
        where);
  if (scores[1] > most_ctc_frames)
    throw Error(ErrorCode::unsupported,
                fmt::format("there are {} frames, and at most {} are taken", scores[1], most_ctc_frames),
                where, "cut the samples, or let the model give fewer frames");
}

// Labels with blanks around each, and how they may follow one another.
struct Extended {
  Var labels;  // i64 [N, 2 S + 1]
  Var skips;   // added to a step over a blank: nothing where both labels are one, else 0
  Var count;   // of labels, [N, 1]
};

Extended extended(const LossTerm& term, Var labels, Var given, ElementType type) {
  const std::int64_t longest = labels.shape()[1];
  const Var blank = constant_like(labels, static_cast<double>(term.blank));
  Extended result;
  Var inside;
  if (given.valid()) {
    result.count = op::unsqueeze(op::cast(given, type), {1});
    inside = op::less(positions(result.count, longest), result.count);
  } else {
    const Var ends = op::logical_or(op::less(labels, constant_like(labels, 0)), op::equal(labels, blank));
    const Var ended = op::cumsum(op::cast(ends, type), 1);
    inside = op::equal(ended, constant_like(ended, 0));
    result.count = op::reduce_sum(op::cast(inside, type), {1}, true);
  }
  const Var padded = op::pad(op::where(inside, labels, blank), {0, 0, 0, 1}, static_cast<double>(term.blank));
  std::vector<std::int64_t> order;  // the blank behind the labels, then each label and it again
  order.push_back(longest);
  for (std::int64_t i = 0; i < longest; ++i) order.insert(order.end(), {i, longest});
  result.labels = op::gather(padded, labels.builder().integers(order), 1);
  const Var same = op::equal(result.labels, op::pad(result.labels, {0, 2, 0, -2}, -1));
  result.skips = op::where(same, constant_like(result.count, nothing), constant_like(result.count, 0));
  return result;
}

// Logarithms of what all paths to a place have together: along `before`, from the place itself, the one
// before it and the one before that.
Var arrived(Var before, Var skips) {
  const Var one = op::pad(before, {0, 1, 0, -1}, nothing);
  const Var two = op::pad(before, {0, 2, 0, -2}, nothing) + skips;
  const Var most = op::max(std::vector{before, one, two});
  return most + op::log(op::exp(before - most) + op::exp(one - most) + op::exp(two - most));
}

Var forward(Var logarithms, const Extended& target, Var frames) {
  const std::int64_t length = logarithms.shape()[1], places = target.labels.shape()[1];
  const Var own = op::expand(op::unsqueeze(target.labels, {1}), {logarithms.shape()[0], length, places});
  const std::vector<Var> said = op::split(op::gather_elements(logarithms, own, 2), 1,
                                          std::vector<std::int64_t>(static_cast<std::size_t>(length), 1));
  // Before the first frame all is at the first blank.
  Tensor start = Tensor::full(logarithms.element(), {1, places}, nothing);
  start.set(0, 0);
  Var now = logarithms.builder().constant(start);
  for (std::int64_t t = 0; t < length; ++t) {
    const Var next = arrived(now, target.skips) + op::squeeze(said[static_cast<std::size_t>(t)], {1});
    now = frames.valid()
              ? op::where(op::less(constant_like(frames, static_cast<double>(t)), frames), next, now)
              : next;
  }
  return now;
}

}  // namespace

Var ctc_values(const LossTerm& term, Var scores, Var labels, const CtcLengths& lengths) {
  require_fitting(term, scores.shape());
  const ElementType given = scores.element();
  const ElementType type = given == ElementType::f64 ? given : ElementType::f32;
  const Var normal = op::log_softmax(op::cast(scores, type), 2);
  const Extended target = extended(term, labels, lengths.labels, type);
  const Var frames = lengths.frames.valid() ? op::unsqueeze(op::cast(lengths.frames, type), {1}) : Var();
  const Var last = forward(op::max(normal, constant_like(normal, nothing)), target, frames);
  // It ends at the last label or at the blank behind it.
  const Var end = target.count * 2.0, places = positions(last, last.shape()[1]);
  const Var ends = op::logical_or(op::equal(places, end), op::equal(places, end - 1.0));
  const Var all = op::reduce_log_sum_exp(op::where(ends, last, constant_like(last, nothing)), {1}, true);
  const double none = term.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  const Var impossible = op::less(all, constant_like(all, next_to_nothing));
  const Var loss = op::where(impossible, constant_like(all, none), -all);
  return op::cast(op::squeeze(loss / op::max(target.count, constant_like(end, 1)), {1}), given);
}

}  // namespace superstep::transform
