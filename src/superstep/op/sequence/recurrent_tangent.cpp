#include "superstep/op/sequence/recurrent_tangent.h"

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/sequence/recurrent_gradient.h"

namespace superstep::op {
namespace {

// Inputs of LSTM: X W R B sequence_lens initial_h initial_c P.
enum Input : std::size_t { x_input, w_input, r_input, b_input, lengths_input, h_input, c_input };

struct Tangents {
  Var y, h, c;  // of one direction: [steps, batch, H], [batch, H] and [batch, H]
};

// One direction. Invalid stands for zero, as elsewhere.
class LstmTangent {
 public:
  LstmTangent(const DerivativeContext& context, std::span<const Var> tangents, std::int64_t direction)
      : context_(context), tangents_(tangents), direction_(direction) {
    const Var x = context.inputs[x_input];
    batch_first_ = context.attributes.integer("layout", 0) != 0;
    steps_ = x.shape()[batch_first_ ? 1 : 0], batch_ = x.shape()[batch_first_ ? 0 : 1];
    hidden_ = context.inputs[r_input].shape()[2];
    reversed_ = direction == 1 || context.attributes.text("direction", "forward") == "reverse";
  }

  Tangents run() {
    const Var before = states_before();
    const Factors factors =
        factors_of(sum_of(primal(x_input), primal(w_input), before, primal(r_input), primal(b_input)));
    const Var ahead = tangents_of_sums(before);
    const Var r = of_direction(primal(r_input));
    Var h = state_of(tangent(h_input)), c = state_of(tangent(c_input));
    std::vector<Var> all(static_cast<std::size_t>(steps_));
    for (std::int64_t i = 0; i < steps_; ++i) {
      const std::int64_t t = reversed_ ? steps_ - 1 - i : i;
      Var sum = ahead.valid() ? at(ahead, t) : Var();
      if (h.valid()) sum = gemm(h, r, sum, {.transpose_b = true});
      step(factors, t, sum, h, c);
      all[static_cast<std::size_t>(t)] = unsqueeze(h.valid() ? h : zeros(), {0});
    }
    return {concat(all, 0), h, c};
  }

 private:
  // What a step's tangents are multiplied by, of all steps: c' = enter i' + leave f' + learn g' + forget
  // c'_before and h' = show o' + pass c', where i', f', g' and o' are those of the sums before the
  // activations. [steps * batch, H].
  struct Factors {
    Var enter, forgotten, learn, forget, show, pass;
  };

  Var primal(std::size_t input) const { return context_.has(input) ? context_.inputs[input] : Var(); }
  Var tangent(std::size_t input) const { return input < tangents_.size() ? tangents_[input] : Var(); }
  Var zeros() const {
    return constant_of_shape(context_.builder, context_.inputs[x_input].element(), {batch_, hidden_});
  }

  // A weight without the direction's axis, both halves of a bias added up: [1, 4 H].
  Var of_direction(Var all) const {
    if (!all.valid()) return {};
    const Var one = slice(all, {direction_}, {direction_ + 1}, {0});
    if (all.shape().rank() == 3) return reshape(one, {all.shape()[1], all.shape()[2]});
    const std::int64_t half = all.shape()[1] / 2;
    const std::vector<Var> halves = split(one, 1, {half, half});
    return halves[0] + halves[1];
  }

  Var state_of(Var states) const {
    if (!states.valid()) return {};
    return reshape(slice(states, {direction_}, {direction_ + 1}, {batch_first_ ? 1 : 0}), {batch_, hidden_});
  }

  // A sequence with time first, as rows.
  Var rows_of(Var sequence) const {
    if (!sequence.valid()) return {};
    if (batch_first_) sequence = swap_axes(sequence, 0, 1);
    return reshape(sequence, {steps_ * batch_, sequence.shape()[2]});
  }

  Var at(Var rows, std::int64_t t) const { return slice(rows, {t * batch_}, {(t + 1) * batch_}, {0}); }

  // The state that each step began with: [steps * batch, H].
  Var states_before() const {
    Var y = context_.outputs[0];  // [steps, D, batch, H], or [batch, steps, D, H]
    y = slice(y, {direction_}, {direction_ + 1}, {batch_first_ ? 2 : 1});
    y = reshape(y, batch_first_ ? Shape{batch_, steps_, hidden_} : Shape{steps_, batch_, hidden_});
    const Var initial = primal(h_input).valid() ? state_of(primal(h_input)) : zeros();
    if (steps_ == 1) return initial;
    const Var rows = rows_of(y);
    const Var others = reversed_ ? slice(rows, {batch_}, {steps_ * batch_}, {0})
                                 : slice(rows, {0}, {(steps_ - 1) * batch_}, {0});
    const Var parts[] = {reversed_ ? others : initial, reversed_ ? initial : others};
    return concat(parts, 0);
  }

  // x w' + h r' + b for all steps; whatever is invalid is left out.
  Var sum_of(Var x, Var w, Var before, Var r, Var b) const {
    Var sum = of_direction(b);
    if (x.valid() && w.valid()) sum = gemm(rows_of(x), of_direction(w), sum, {.transpose_b = true});
    if (before.valid() && r.valid()) sum = gemm(before, of_direction(r), sum, {.transpose_b = true});
    return sum;
  }

  // The tangents of the sums before activations, but for what comes by the tangent of the state before.
  Var tangents_of_sums(Var before) const {
    const Var by_weights =
        sum_of(primal(x_input), tangent(w_input), before, tangent(r_input), tangent(b_input));
    if (!tangent(x_input).valid()) return spread(by_weights);
    return spread(
        gemm(rows_of(tangent(x_input)), of_direction(primal(w_input)), by_weights, {.transpose_b = true}));
  }

  // Of biases alone there is one row.
  Var spread(Var sum) const {
    if (!sum.valid() || sum.shape()[0] == steps_ * batch_) return sum;
    return sum + constant_of_shape(context_.builder, sum.element(), {steps_ * batch_, 4 * hidden_});
  }

  std::vector<Var> gates_of(Var sum) const { return split(sum, 1, {hidden_, hidden_, hidden_, hidden_}); }

  Factors factors_of(Var sum) {
    const std::vector<Var> sums = gates_of(sum);  // input, output, forget, cell
    const Var enter = sigmoid(sums[0]), show = sigmoid(sums[1]), forget = sigmoid(sums[2]),
              learn = tanh(sums[3]);
    const auto [before, after] = cells(enter, forget, learn);
    const Var squashed = tanh(after);
    return {.enter = learn * enter * (1.0 - enter),
            .forgotten = before * forget * (1.0 - forget),
            .learn = enter * (1.0 - learn * learn),
            .forget = forget,
            .show = squashed * show * (1.0 - show),
            .pass = show * (1.0 - squashed * squashed)};
  }

  // Cells before and after each step, of all steps.
  std::pair<Var, Var> cells(Var enter, Var forget, Var learn) const {
    const auto count = static_cast<std::size_t>(steps_);
    std::vector<Var> before(count), after(count);
    Var cell = primal(c_input).valid() ? state_of(primal(c_input)) : zeros();
    for (std::int64_t i = 0; i < steps_; ++i) {
      const std::int64_t t = reversed_ ? steps_ - 1 - i : i;
      const auto place = static_cast<std::size_t>(t);
      before[place] = cell;
      cell = at(forget, t) * cell + at(enter, t) * at(learn, t);
      after[place] = cell;
    }
    return {concat(before, 0), concat(after, 0)};
  }

  // From the states' tangents before step t to those behind it.
  void step(const Factors& f, std::int64_t t, Var sum, Var& h, Var& c) const {
    Var cell = c.valid() ? at(f.forget, t) * c : Var();
    if (sum.valid()) {
      const std::vector<Var> gates = gates_of(sum);
      const Var entered =
          at(f.enter, t) * gates[0] + at(f.forgotten, t) * gates[2] + at(f.learn, t) * gates[3];
      cell = cell.valid() ? cell + entered : entered;
      h = at(f.show, t) * gates[1] + at(f.pass, t) * cell;
    } else {
      h = cell.valid() ? at(f.pass, t) * cell : Var();
    }
    c = cell;
  }

  const DerivativeContext& context_;
  std::span<const Var> tangents_;
  std::int64_t direction_, steps_ = 0, batch_ = 0, hidden_ = 0;
  bool batch_first_ = false, reversed_ = false;
};

}  // namespace

std::vector<Var> jvp_lstm(const DerivativeContext& context, std::span<const Var> tangents,
                          Decomposition unrolled) {
  const Shape& x = context.inputs[x_input].shape();
  if (!has_lstm_gradient(context) || x[0] == 0 || x[1] == 0) return jvp_through(unrolled, context, tangents);
  const std::int64_t directions = context.inputs[r_input].shape()[0],
                     hidden = context.inputs[r_input].shape()[2];
  const bool batch_first = context.attributes.integer("layout", 0) != 0;
  const std::int64_t batch = x[batch_first ? 0 : 1];
  const Var zero = constant_of_shape(context.builder, context.inputs[x_input].element(), {batch, hidden});
  std::vector<Var> y, h, c;
  for (std::int64_t direction = 0; direction < directions; ++direction) {
    const Tangents found = LstmTangent(context, tangents, direction).run();
    const std::int64_t axis = batch_first ? 1 : 0;
    y.push_back(unsqueeze(found.y, {1}));
    h.push_back(unsqueeze(found.h.valid() ? found.h : zero, {axis}));
    c.push_back(unsqueeze(found.c.valid() ? found.c : zero, {axis}));
  }
  Var all = concat(y, 1);  // [steps, D, batch, H]
  if (batch_first) all = transpose(all, {2, 0, 1, 3});
  std::vector<Var> result = {all, concat(h, batch_first ? 1 : 0), concat(c, batch_first ? 1 : 0)};
  result.resize(context.outputs.size());
  return result;
}

}  // namespace superstep::op
