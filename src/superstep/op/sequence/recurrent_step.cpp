#include "superstep/op/sequence/recurrent_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/cumulative.h"

namespace superstep::op::recurrent {
namespace {

int directions_of(const Attributes& attributes) {
  const std::string direction = attributes.text("direction", "forward");
  require(
      direction == "forward" || direction == "reverse" || direction == "bidirectional",
      fmt::format("attribute 'direction' is '{}', expected forward, reverse or bidirectional", direction));
  return direction == "bidirectional" ? 2 : 1;
}

// The first block of `width` columns of a matrix, the second, ...
std::vector<Var> columns(Var x, int count) {
  const std::int64_t width = x.shape()[1] / count;
  return split(x, 1, std::vector<std::int64_t>(static_cast<std::size_t>(count), width));
}

Var limited(const DerivativeContext& context, Var gate) {
  const double limit = context.attributes.number("clip", 0);
  return limit > 0 ? clip(gate, -limit, limit) : gate;
}

Var with_bias(Var product, Var bias) { return bias.valid() ? product + bias : product; }

State rnn_step(const DerivativeContext& context, const Direction& d, Var input, State state) {
  const Var gate = gemm(state.h, d.r, d.bias_r, {.transpose_b = true}) + input;
  return {d.functions[0](limited(context, gate)), {}};
}

State gru_step(const DerivativeContext& context, const Direction& d, Var input, State state) {
  const bool linear_before_reset = context.attributes.integer("linear_before_reset", 0) != 0;
  const std::int64_t hidden = d.r.shape()[1], cut = 2 * hidden;
  const std::vector<Var> from_input = split(input, 1, {cut, hidden});
  std::vector<Var> from_state;
  if (linear_before_reset) {  // one product for all gates
    from_state = split(gemm(state.h, d.r, d.bias_r, {.transpose_b = true}), 1, {cut, hidden});
  } else {
    const std::vector<Var> r = split(d.r, 0, {cut, hidden});
    std::vector<Var> bias(2);
    if (d.bias_r.valid()) bias = split(d.bias_r, 1, {cut, hidden});
    from_state = {gemm(state.h, r[0], bias[0], {.transpose_b = true}), r[1], bias[1]};
  }
  const std::vector<Var> zr = columns(d.functions[0](limited(context, from_input[0] + from_state[0])), 2);
  const Var recurrent = linear_before_reset
                            ? zr[1] * from_state[1]
                            : gemm(zr[1] * state.h, from_state[1], from_state[2], {.transpose_b = true});
  const Var candidate = d.functions[1](limited(context, from_input[1] + recurrent));
  return {(1.0 - zr[0]) * candidate + zr[0] * state.h, {}};
}

State lstm_step(const DerivativeContext& context, const Direction& d, Var input, State state) {
  const Var sum = with_bias(with_bias(gemm(state.h, d.r, input, {.transpose_b = true}), d.bias_w), d.bias_r);
  std::vector<Var> gates = columns(sum, 4), peephole(3);  // input, output, forget, cell
  if (d.peephole.valid()) peephole = columns(d.peephole, 3);
  const auto gate = [&](int i, int function, Var cell) {
    const auto k = static_cast<std::size_t>(i);
    const bool peeps = i < 3 && peephole[k].valid();
    const Var before = peeps ? gates[k] + peephole[k] * cell : gates[k];
    return d.functions[static_cast<std::size_t>(function)](limited(context, before));
  };
  const Var enter = gate(0, 0, state.c);
  const bool coupled = context.attributes.integer("input_forget", 0) != 0;
  const Var forget = coupled ? 1.0 - enter : gate(2, 0, state.c);
  const Var cell = forget * state.c + enter * gate(3, 1, {});
  return {gate(1, 0, cell) * d.functions[2](cell), cell};
}

Var of_direction(const DerivativeContext& context, std::size_t input, int direction) {
  if (!context.has(input)) return {};
  const Var all = context.inputs[input];
  const Var one = slice(all, {direction}, {direction + 1}, {0});
  const Shape& shape = all.shape();
  return shape.rank() == 3 ? reshape(one, {shape[1], shape[2]}) : one;
}

Var initial_state(const DerivativeContext& context, std::size_t input, int direction, const Sizes& s) {
  const Var x = context.inputs[x_input];
  if (!context.has(input)) return constant_of_shape(context.builder, x.element(), {s.batch, s.hidden});
  const std::int64_t axis = s.batch_first ? 1 : 0;
  return reshape(slice(context.inputs[input], {direction}, {direction + 1}, {axis}), {s.batch, s.hidden});
}

std::vector<Activation> functions_of(const DerivativeContext& context, const Cell& cell, int number,
                                     const Sizes& s) {
  const auto all = recurrent_activations(context.attributes, cell.functions, s.directions);
  const std::size_t count = all.size() / static_cast<std::size_t>(s.directions);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(number));
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

Direction direction_of(const DerivativeContext& context, const Cell& cell, int number, const Sizes& s) {
  Direction d;
  d.w = of_direction(context, w_input, number);
  d.r = of_direction(context, r_input, number);
  if (const Var bias = of_direction(context, b_input, number); bias.valid()) {
    const std::vector<Var> halves = columns(bias, 2);
    d.bias_w = halves[0];
    d.bias_r = halves[1];
  }
  d.peephole = of_direction(context, p_input, number);
  d.h = initial_state(context, h_input, number, s);
  d.c = initial_state(context, c_input, number, s);
  d.functions = functions_of(context, cell, number, s);
  d.reversed = number == 1 || context.attributes.text("direction", "forward") == "reverse";
  return d;
}

Sizes sizes_of(const Attributes& attributes, const Shape& x, const Shape& r) {
  require(x.rank() == 3, fmt::format("input X is {}, expected rank 3", to_string(x)));
  require(r.rank() == 3, fmt::format("input R is {}, expected rank 3", to_string(r)));
  const bool batch_first = attributes.integer("layout", 0) != 0;
  return {x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2], r[2], directions_of(attributes), batch_first};
}

Shape state_shape(const Sizes& s) {
  return s.batch_first ? Shape{s.batch, s.directions, s.hidden} : Shape{s.directions, s.batch, s.hidden};
}

const Cell& cell_of(std::string_view op) {
  static const Cell cells[] = {{"RNN", 1, false, false, rnn_step, {"Tanh"}},
                               {"GRU", 3, false, false, gru_step, {"Sigmoid", "Tanh"}},
                               {"LSTM", 4, true, true, lstm_step, {"Sigmoid", "Tanh", "Tanh"}}};
  const auto found = std::ranges::find(cells, op, &Cell::op);
  require(found != std::end(cells), fmt::format("'{}' is no recurrent operator: RNN, GRU or LSTM", op));
  return *found;
}

Var lengths_of(const DerivativeContext& context, const Sizes& s) {
  if (!context.has(lengths_input)) return {};
  return indices_within(context.inputs[lengths_input], {.count = s.steps + 1, .what = "input sequence_lens"});
}

Var in_order(const Direction& d, Var sequence, Var lengths) {
  return goes_by_length(d, lengths) ? reverse_sequence(sequence, lengths) : sequence;
}

Var rows_of_inputs(const Cell& cell, const Direction& d, Var x, const Sizes& s) {
  return gemm(reshape(x, {s.steps * s.batch, s.inputs}), d.w, cell.adds_input_bias ? Var() : d.bias_w,
              {.transpose_b = true});
}

Stepped stepped(const DerivativeContext& context, const Cell& cell, const Direction& d, Var input,
                State state, Var lengths, Var now) {
  State next = cell.step(context, d, input, state);
  if (!lengths.valid()) return {next.h, next};
  const Var active = unsqueeze(greater(lengths, now), {1});
  const Var y = where(active, next.h, constant_like(next.h, 0));
  next.h = where(active, next.h, state.h);
  if (next.c.valid()) next.c = where(active, next.c, state.c);
  return {y, next};
}

}  // namespace superstep::op::recurrent
