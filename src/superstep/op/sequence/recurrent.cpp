#include "superstep/op/sequence/recurrent.h"

#include <fmt/format.h>

#include <array>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "superstep/op/sequence/recurrent_step.h"
#include "superstep/op/sequence/recurrent_tangent.h"

namespace superstep::op {
namespace {

using namespace recurrent;  // NOLINT: of this family

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

struct Swept {
  Var y;  // [steps, batch, H]
  State last;
};

// One direction over all steps.
Swept sweep(const DerivativeContext& context, const Cell& cell, const Direction& d, Var x, const Sizes& s) {
  const Var lengths = lengths_of(context, s);
  const bool backwards = d.reversed && !lengths.valid();
  const Var product = rows_of_inputs(cell, d, in_order(d, x, lengths), s);
  std::vector<Var> outputs(static_cast<std::size_t>(s.steps));
  State state{d.h, d.c};
  for (std::int64_t i = 0; i < s.steps; ++i) {
    const std::int64_t t = backwards ? s.steps - 1 - i : i;
    const Var now = lengths.valid() ? constant_like(lengths, static_cast<double>(t)) : Var();
    const Var row = slice(product, {t * s.batch}, {(t + 1) * s.batch}, {0});
    const Stepped step = stepped(context, cell, d, row, state, lengths, now);
    state = step.next;
    outputs[static_cast<std::size_t>(t)] = unsqueeze(step.y, {0});
  }
  const Var y = outputs.empty() ? constant_of_shape(context.builder, x.element(), {0, s.batch, s.hidden})
                                : concat(outputs, 0);
  return {in_order(d, y, lengths), state};
}

// States of each direction [batch, H], stacked as the layout has them.
Var stacked(const std::vector<Var>& states, const Sizes& s) {
  std::vector<Var> parts;
  for (Var state : states) parts.push_back(unsqueeze(state, {s.batch_first ? 1 : 0}));
  return concat(parts, s.batch_first ? 1 : 0);
}

std::vector<Var> unrolled(const DerivativeContext& context, const Cell& cell) {
  Var x = context.inputs[x_input];
  const Sizes s = sizes_of(context.attributes, x.shape(), context.inputs[r_input].shape());
  if (s.batch_first) x = swap_axes(x, 0, 1);
  std::vector<Var> y, h, c;
  for (int number = 0; number < s.directions; ++number) {
    const Swept swept = sweep(context, cell, direction_of(context, cell, number, s), x, s);
    y.push_back(unsqueeze(swept.y, {1}));
    h.push_back(swept.last.h);
    c.push_back(swept.last.c);
  }
  Var all = concat(y, 1);  // [steps, D, batch, H]
  if (s.batch_first) all = transpose(all, {2, 0, 1, 3});
  std::vector<Var> results = {all, stacked(h, s)};
  if (cell.has_cell) results.push_back(stacked(c, s));
  return results;
}

std::vector<Var> decompose_rnn(const DerivativeContext& context) { return unrolled(context, cell_of("RNN")); }
std::vector<Var> decompose_gru(const DerivativeContext& context) { return unrolled(context, cell_of("GRU")); }
std::vector<Var> decompose_lstm(const DerivativeContext& context) {
  return unrolled(context, cell_of("LSTM"));
}

std::vector<Var> vjp_of_rnn(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>& wanted) {
  return vjp_recurrent("RNN", context, cotangents, wanted);
}
std::vector<Var> vjp_of_gru(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>& wanted) {
  return vjp_recurrent("GRU", context, cotangents, wanted);
}
std::vector<Var> vjp_of_lstm(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>& wanted) {
  return has_lstm_gradient(context) ? vjp_lstm(context, cotangents)
                                    : vjp_recurrent("LSTM", context, cotangents, wanted);
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

Definition rnn_definition() {
  Definition definition =
      composite<decompose_rnn>({"RNN", 14, 3, 6, 2}, infer_recurrent<1>,
                               {.elements = Elements::floating,
                                .work = WorkKind::recurrent,
                                .batch = batch::recurrent,
                                .attributes = "activation_alpha activation_beta activations clip direction "
                                              "hidden_size layout output_sequence"});
  definition.vjp = vjp_of_rnn;
  return definition;
}

Definition gru_definition() {
  Definition definition =
      composite<decompose_gru>({"GRU", 14, 3, 6, 2}, infer_recurrent<3>,
                               {.elements = Elements::floating,
                                .work = WorkKind::recurrent,
                                .batch = batch::recurrent,
                                .attributes = "activation_alpha activation_beta activations clip direction "
                                              "hidden_size layout linear_before_reset output_sequence"});
  definition.vjp = vjp_of_gru;
  return definition;
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
  static const Definition definitions[] = {rnn_definition(), gru_definition(), lstm_definition()};
  return definitions;
}

}  // namespace superstep::op
