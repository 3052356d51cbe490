#include "superstep/op/sequence/recurrent.h"

#include <fmt/format.h>

#include <array>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/sequence/recurrent_activation.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "superstep/op/sequence/recurrent_tangent.h"

namespace superstep::op {
namespace {

// Inputs of all three operators: X W R B sequence_lens initial_h; LSTM adds initial_c and P.
enum Input : std::size_t { x_input, w_input, r_input, b_input, lengths_input, h_input, c_input, p_input };

struct Sizes {
  std::int64_t steps, batch, inputs, hidden;
  int directions;
  bool batch_first;
};

int directions_of(const Attributes& attributes) {
  const std::string direction = attributes.text("direction", "forward");
  require(
      direction == "forward" || direction == "reverse" || direction == "bidirectional",
      fmt::format("attribute 'direction' is '{}', expected forward, reverse or bidirectional", direction));
  return direction == "bidirectional" ? 2 : 1;
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

template <int gates>
std::vector<ValueType> infer_recurrent(const InferContext& context) {
  require_floating(context, x_input, "X");
  const Sizes s = sizes_of(context.attributes, context.input(x_input).shape, context.input(r_input).shape);
  const std::int64_t d = s.directions, rows = gates * s.hidden;
  require(context.attributes.integer("hidden_size", s.hidden) == s.hidden,
          fmt::format("attribute 'hidden_size' does not agree with input R's {}", s.hidden));
  const auto check = [&](std::size_t input, const char* name, const Shape& shape) {
    if (!context.has(input)) return;
    require_shape(context, input, name, shape);
    require_same_element(context, input, name, x_input, "X");
  };
  check(w_input, "W", {d, rows, s.inputs});
  check(r_input, "R", {d, rows, s.hidden});
  check(b_input, "B", {d, 2 * rows});
  check(h_input, "initial_h", state_shape(s));
  check(c_input, "initial_c", state_shape(s));
  check(p_input, "P", {d, 3 * s.hidden});
  if (context.has(lengths_input)) {
    require_integer(context, lengths_input, "sequence_lens");
    require_shape(context, lengths_input, "sequence_lens", {s.batch});
  }
  const ElementType element = context.input(x_input).element;
  const Shape y = s.batch_first ? Shape{s.batch, s.steps, d, s.hidden} : Shape{s.steps, d, s.batch, s.hidden};
  std::vector<ValueType> types = {{element, y}, {element, state_shape(s)}};
  if (gates == 4) types.push_back({element, state_shape(s)});
  return types;
}

// What one direction works with: matrices without the direction's axis.
struct Direction {
  Var w, r, bias_w, bias_r, peephole;  // biases [1, G H]
  Var h, c;                            // the state before the first step [batch, H]
  std::vector<Activation> functions;
  bool reversed = false;
};

struct State {
  Var h, c;
};

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

// `input` is x W' for the step, with the input's bias but for an LSTM. Each gives the state after the step.
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

using Step = State (*)(const DerivativeContext&, const Direction&, Var, State);

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

Direction direction_of(const DerivativeContext& context, int number, const Sizes& s,
                       const std::vector<Activation>& functions) {
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
  const std::size_t count = functions.size() / static_cast<std::size_t>(s.directions);
  const auto first =
      functions.begin() + static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(number));
  d.functions.assign(first, first + static_cast<std::ptrdiff_t>(count));
  d.reversed = number == 1 || context.attributes.text("direction", "forward") == "reverse";
  return d;
}

struct Swept {
  Var y;  // [steps, batch, H]
  State last;
};

// One direction over all steps. Sequences that have ended keep their state and give zeros.
Swept sweep(const DerivativeContext& context, const Direction& d, Var x, const Sizes& s, Step step) {
  const Var lengths = context.has(lengths_input)
                          ? indices_within(context.inputs[lengths_input],
                                           {.count = s.steps + 1, .what = "input sequence_lens"})
                          : Var();
  const bool by_length = d.reversed && lengths.valid();
  if (by_length) x = reverse_sequence(x, lengths);
  const Var product = gemm(reshape(x, {s.steps * s.batch, s.inputs}), d.w,
                           step == lstm_step ? Var() : d.bias_w, {.transpose_b = true});
  std::vector<Var> outputs(static_cast<std::size_t>(s.steps));
  State state{d.h, d.c};
  for (std::int64_t i = 0; i < s.steps; ++i) {
    const std::int64_t t = d.reversed && !by_length ? s.steps - 1 - i : i;
    State next = step(context, d, slice(product, {t * s.batch}, {(t + 1) * s.batch}, {0}), state);
    Var y = next.h;
    if (lengths.valid()) {
      const Var active = unsqueeze(greater(lengths, constant_like(lengths, static_cast<double>(t))), {1});
      y = where(active, next.h, constant_like(next.h, 0));
      next.h = where(active, next.h, state.h);
      if (next.c.valid()) next.c = where(active, next.c, state.c);
    }
    state = next;
    outputs[static_cast<std::size_t>(t)] = unsqueeze(y, {0});
  }
  Var y = outputs.empty() ? constant_of_shape(context.builder, x.element(), {0, s.batch, s.hidden})
                          : concat(outputs, 0);
  return {by_length ? reverse_sequence(y, lengths) : y, state};
}

// States of each direction [batch, H], stacked as the layout has them.
Var stacked(const std::vector<Var>& states, const Sizes& s) {
  std::vector<Var> parts;
  for (Var state : states) parts.push_back(unsqueeze(state, {s.batch_first ? 1 : 0}));
  return concat(parts, s.batch_first ? 1 : 0);
}

std::vector<Var> unrolled(const DerivativeContext& context, Step step,
                          const std::vector<std::string>& defaults) {
  Var x = context.inputs[x_input];
  const Sizes s = sizes_of(context.attributes, x.shape(), context.inputs[r_input].shape());
  if (s.batch_first) x = swap_axes(x, 0, 1);
  const auto functions = recurrent_activations(context.attributes, defaults, s.directions);
  std::vector<Var> y, h, c;
  for (int number = 0; number < s.directions; ++number) {
    const Swept swept = sweep(context, direction_of(context, number, s, functions), x, s, step);
    y.push_back(unsqueeze(swept.y, {1}));
    h.push_back(swept.last.h);
    c.push_back(swept.last.c);
  }
  Var all = concat(y, 1);  // [steps, D, batch, H]
  if (s.batch_first) all = transpose(all, {2, 0, 1, 3});
  std::vector<Var> results = {all, stacked(h, s)};
  if (step == lstm_step) results.push_back(stacked(c, s));
  return results;
}

std::vector<Var> decompose_rnn(const DerivativeContext& context) {
  return unrolled(context, rnn_step, {"Tanh"});
}
std::vector<Var> decompose_gru(const DerivativeContext& context) {
  return unrolled(context, gru_step, {"Sigmoid", "Tanh"});
}
std::vector<Var> decompose_lstm(const DerivativeContext& context) {
  return unrolled(context, lstm_step, {"Sigmoid", "Tanh", "Tanh"});
}

std::vector<Var> vjp_of_lstm(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>& wanted) {
  return vjp_lstm(context, cotangents, wanted, decompose_lstm);
}

std::vector<Var> jvp_of_lstm(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_lstm(context, tangents, decompose_lstm);
}

// The two products of each step; what is done element by element is small beside them.
double lstm_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const auto &x = inputs[x_input].shape, &w = inputs[w_input].shape, &r = inputs[r_input].shape;
  return 2 * static_cast<double>(x[0] * x[1]) * static_cast<double>(w[0] * w[1]) *
         static_cast<double>(x[2] + r[2]);
}

Definition lstm_definition() {
  Definition definition =
      composite<decompose_lstm>({"LSTM", 14, 3, 8, 3}, infer_recurrent<4>,
                                {.elements = Elements::floating,
                                 .work = WorkKind::recurrent,
                                 .batch = batch::recurrent,
                                 .attributes = "activation_alpha activation_beta activations clip direction "
                                               "hidden_size input_forget layout output_sequence"});
  definition.vjp = vjp_of_lstm;
  definition.jvp = jvp_of_lstm;
  definition.flops = lstm_flops;
  return definition;
}

Attributes to_attributes(const RecurrentAttributes& a, Var r) {
  Attributes result{{"direction", a.direction},
                    {"hidden_size", r.shape()[r.shape().rank() - 1]},
                    {"layout", std::int64_t{a.batch_first}}};
  if (!a.activations.empty()) result.set("activations", a.activations);
  return result;
}

}  // namespace

Recurrent rnn(Var x, Var w, Var r, Var bias, Var initial, const RecurrentAttributes& attributes) {
  const Var inputs[] = {x, w, r, bias, Var(), initial};
  const auto outputs = x.builder().node("RNN", inputs, to_attributes(attributes, r), 2);
  return {outputs[0], outputs[1], {}};
}

Recurrent gru(Var x, Var w, Var r, Var bias, Var initial, const RecurrentAttributes& attributes) {
  const Var inputs[] = {x, w, r, bias, Var(), initial};
  Attributes all = to_attributes(attributes, r);
  all.set("linear_before_reset", std::int64_t{attributes.linear_before_reset});
  const auto outputs = x.builder().node("GRU", inputs, std::move(all), 2);
  return {outputs[0], outputs[1], {}};
}

Recurrent lstm(Var x, Var w, Var r, Var bias, Var initial, Var initial_cell,
               const RecurrentAttributes& attributes) {
  const Var inputs[] = {x, w, r, bias, Var(), initial, initial_cell};
  const auto outputs = x.builder().node("LSTM", inputs, to_attributes(attributes, r), 3);
  return {outputs[0], outputs[1], outputs[2]};
}

std::span<const Definition> recurrent_operators() {
  static const Definition definitions[] = {
      composite<decompose_rnn>({"RNN", 14, 3, 6, 2}, infer_recurrent<1>,
                               {.elements = Elements::floating,
                                .work = WorkKind::recurrent,
                                .batch = batch::recurrent,
                                .attributes = "activation_alpha activation_beta activations clip direction "
                                              "hidden_size layout output_sequence"}),
      composite<decompose_gru>({"GRU", 14, 3, 6, 2}, infer_recurrent<3>,
                               {.elements = Elements::floating,
                                .work = WorkKind::recurrent,
                                .batch = batch::recurrent,
                                .attributes = "activation_alpha activation_beta activations clip direction "
                                              "hidden_size layout linear_before_reset output_sequence"}),
      lstm_definition(),
  };
  return definitions;
}

}  // namespace superstep::op
