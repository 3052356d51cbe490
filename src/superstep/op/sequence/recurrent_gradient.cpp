#include "superstep/op/sequence/recurrent_gradient.h"

#include <algorithm>
#include <array>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/sequence/recurrent.h"
#include "superstep/op/sequence/recurrent_step.h"

namespace superstep::op {
namespace {

// Inputs of LSTM: X W R B sequence_lens initial_h initial_c P.
enum Input : std::size_t { x, w, r, bias, lengths, hidden, cell, peephole };
// Inputs of the gradient.
enum Gradient : std::size_t { g_x, g_w, g_r, g_bias, g_hidden, g_cell, g_y, g_dy, g_dy_h, g_dy_c };

constexpr std::array differentiated = {g_x, g_w, g_r, g_bias, g_hidden, g_cell};

std::vector<ValueType> infer_lstm_gradient(const InferContext& context) {
  require_floating(context, g_x, "X");
  require_rank(context, g_x, "X", 3);
  require_rank(context, g_r, "R", 3);
  std::vector<ValueType> types;
  for (std::size_t input : differentiated) {
    require_same_element(context, input, "W, R, B and initial states", g_x, "X");
    types.push_back(context.input(input));
  }
  const bool batch_first = context.attributes.integer("layout", 0) != 0;
  const Shape &sequence = context.input(g_x).shape, &r_shape = context.input(g_r).shape;
  const Shape y = batch_first ? Shape{sequence[0], sequence[1], r_shape[0], r_shape[2]}
                              : Shape{sequence[0], r_shape[0], sequence[1], r_shape[2]};
  require_shape(context, g_y, "Y", y);
  if (context.has(g_dy)) require_shape(context, g_dy, "dY", y);
  for (std::size_t input : {g_dy_h, g_dy_c})
    if (context.has(input)) require_shape(context, input, "dY_h or dY_c", context.input(g_hidden).shape);
  return types;
}

// The rule of the LSTM unrolled; Y is not needed for it.
std::vector<Var> decompose_lstm_gradient(const DerivativeContext& context) {
  const std::vector<Var>& in = context.inputs;
  const std::vector<Var> given = {in[g_x], in[g_w], in[g_r], in[g_bias], Var(), in[g_hidden], in[g_cell]};
  const auto optional = [&](std::size_t i) { return i < in.size() ? in[i] : Var(); };
  const Var cotangents[] = {optional(g_dy), optional(g_dy_h), optional(g_dy_c)};
  const std::vector<Var> found =
      vjp_through(get("LSTM").decompose, {context.builder, context.attributes, given, {}}, cotangents, {});
  std::vector<Var> result;
  for (std::size_t i : {x, w, r, bias, hidden, cell}) {
    const Var zero = constant_of_shape(context.builder, given[i].element(), given[i].shape());
    result.push_back(found[i].valid() ? found[i] : zero);
  }
  return result;
}

// Two products of the size of the forward pass: by the inputs and by the weights; the gates are at hand.
double lstm_gradient_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const auto &sequence = inputs[g_x].shape, &w_shape = inputs[g_w].shape, &r_shape = inputs[g_r].shape;
  const auto gates = static_cast<double>(w_shape[0] * w_shape[1]);
  const auto width = static_cast<double>(sequence[2] + r_shape[2]);
  return 4 * static_cast<double>(sequence[0] * sequence[1]) * gates * width;
}

Definition gradient_definition() {
  Definition definition = composite<decompose_lstm_gradient>(
      {lstm_gradient_operator, 0, 7, 10, 6}, infer_lstm_gradient,
      {.elements = Elements::floating, .work = WorkKind::recurrent, .batch = batch::lstm_gradient});
  definition.flops = lstm_gradient_flops;
  return definition;
}

// ---- of any cell

// Inputs of the gradient, behind those of the cell, and which of these have a cotangent.
enum RecurrentInput : std::size_t { rg_y = 8, rg_dy, rg_dy_h, rg_dy_c };
constexpr std::array recurrent_differentiated = {x, w, r, bias, hidden, cell, peephole};

std::span<const Input> differentiated_of(const recurrent::Cell& of) {
  return std::span(recurrent_differentiated).first(of.has_cell ? 7 : 5);
}

const recurrent::Cell& cell_of(const Attributes& attributes) {
  return recurrent::cell_of(attributes.text("cell", ""));
}

std::vector<ValueType> infer_recurrent_gradient(const InferContext& context) {
  require_floating(context, x, "X");
  const recurrent::Cell& of = cell_of(context.attributes);
  const recurrent::Sizes s =
      recurrent::sizes_of(context.attributes, context.input(x).shape, context.input(r).shape);
  const std::int64_t d = s.directions, rows = of.gates * s.hidden;
  const Shape state = recurrent::state_shape(s);
  const Shape shapes[] = {context.input(x).shape,
                          {d, rows, s.inputs},
                          {d, rows, s.hidden},
                          {d, 2 * rows},
                          {s.batch},
                          state,
                          state,
                          {d, 3 * s.hidden}};
  std::vector<ValueType> types;
  for (std::size_t input : differentiated_of(of)) {
    require_shape(context, input, "X, W, R, B, initial states or P", shapes[input]);
    require_same_element(context, input, "W, R, B, initial states and P", x, "X");
    types.push_back(context.input(input));
  }
  if (context.has(lengths)) require_shape(context, lengths, "sequence_lens", shapes[lengths]);
  const Shape y = s.batch_first ? Shape{s.batch, s.steps, d, s.hidden} : Shape{s.steps, d, s.batch, s.hidden};
  for (std::size_t input : {rg_y, rg_dy})
    if (context.has(input)) require_shape(context, input, "Y or dY", y);
  for (std::size_t input : {rg_dy_h, rg_dy_c})
    if (context.has(input)) require_shape(context, input, "dY_h or dY_c", state);
  return types;
}

// The rule of the cell unrolled.
std::vector<Var> decompose_recurrent_gradient(const DerivativeContext& context) {
  const recurrent::Cell& of = cell_of(context.attributes);
  std::vector<Var> all = context.inputs;
  all.resize(rg_dy_c + 1);
  const std::vector<Var> given(all.begin(), all.begin() + rg_y);
  const std::span cotangents = std::span(all).subspan(rg_dy, of.has_cell ? 3 : 2);
  const std::vector<Var> found =
      vjp_through(get(of.op).decompose, {context.builder, context.attributes, given, {}}, cotangents, {});
  std::vector<Var> result;
  for (std::size_t i : differentiated_of(of)) {
    const Var zero = constant_of_shape(context.builder, given[i].element(), given[i].shape());
    result.push_back(found[i].valid() ? found[i] : zero);
  }
  return result;
}

Definition recurrent_gradient_definition() {
  return composite<decompose_recurrent_gradient>(
      {recurrent_gradient_operator, 0, 4, rg_dy_c + 1, 7}, infer_recurrent_gradient,
      {.elements = Elements::floating, .work = WorkKind::recurrent, .batch = batch::recurrent_gradient});
}

// What the gradient takes: all of the cell's inputs, zeros for those left out.
std::vector<Var> given_inputs(const recurrent::Cell& of, const DerivativeContext& context) {
  const recurrent::Sizes s =
      recurrent::sizes_of(context.attributes, context.inputs[x].shape(), context.inputs[r].shape());
  const std::int64_t d = s.directions;
  std::vector<Var> all = context.inputs;
  all.resize(rg_y);
  const auto give = [&](std::size_t input, const Shape& shape) {
    if (!all[input].valid()) all[input] = constant_of_shape(context.builder, all[x].element(), shape);
  };
  give(bias, {d, 2 * of.gates * s.hidden});
  give(hidden, recurrent::state_shape(s));
  if (!of.has_cell) return all;
  give(cell, recurrent::state_shape(s));
  give(peephole, {d, 3 * s.hidden});
  return all;
}

}  // namespace

std::vector<Var> lstm_gradient(std::span<const Var> inputs, Var y, std::span<const Var> cotangents,
                               const Attributes& attributes) {
  std::vector<Var> all(inputs.begin(), inputs.end());
  all.push_back(y);
  all.insert(all.end(), cotangents.begin(), cotangents.end());
  return y.builder().node(lstm_gradient_operator, all, attributes, 6);
}

bool has_lstm_gradient(const DerivativeContext& context) {
  const Attributes& a = context.attributes;
  const bool plain = !a.has("activations") && !a.has("clip") && a.integer("input_forget", 0) == 0;
  const bool has_y = !context.outputs.empty() && context.outputs[0].valid();
  return plain && has_y && !context.has(lengths) && !context.has(peephole);
}

std::vector<Var> vjp_lstm(const DerivativeContext& context, std::span<const Var> cotangents) {
  const Var sequence = context.inputs[x], recurrent = context.inputs[r];
  const bool batch_first = context.attributes.integer("layout", 0) != 0;
  const std::int64_t directions = recurrent.shape()[0], units = recurrent.shape()[2];
  const std::int64_t batch = sequence.shape()[batch_first ? 0 : 1];
  const Shape state = batch_first ? Shape{batch, directions, units} : Shape{directions, batch, units};
  const auto given = [&](std::size_t input, const Shape& shape) {
    return context.has(input) ? context.inputs[input]
                              : constant_of_shape(context.builder, sequence.element(), shape);
  };
  const Var inputs[] = {sequence,
                        context.inputs[w],
                        recurrent,
                        given(bias, {directions, 8 * units}),
                        given(hidden, state),
                        given(cell, state)};
  const std::vector<Var> found = lstm_gradient(inputs, context.outputs[0], cotangents, context.attributes);
  std::vector<Var> result = no_cotangents(context);
  constexpr std::array places = {x, w, r, bias, hidden, cell};
  for (std::size_t i = 0; i < places.size(); ++i)
    if (context.has(places[i])) result[places[i]] = found[i];
  return result;
}

std::vector<Var> vjp_recurrent(std::string_view op, const DerivativeContext& context,
                               std::span<const Var> cotangents, const std::vector<bool>& wanted) {
  const recurrent::Cell& of = recurrent::cell_of(op);
  if (context.inputs[x].shape().element_count() == 0)
    return vjp_through(get(op).decompose, context, cotangents, wanted);
  std::vector<Var> inputs = given_inputs(of, context);
  inputs.push_back(context.outputs.empty() ? Var() : context.outputs[0]);
  inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
  Attributes attributes = context.attributes;
  attributes.set("cell", std::string(op));
  const std::span places = differentiated_of(of);
  const std::vector<Var> found = context.builder.node(recurrent_gradient_operator, inputs,
                                                      std::move(attributes), static_cast<int>(places.size()));
  std::vector<Var> result = no_cotangents(context);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (context.has(places[i])) result[places[i]] = found[i];
  return result;
}

std::span<const Definition> recurrent_gradient_operators() {
  static const Definition definitions[] = {gradient_definition(), recurrent_gradient_definition()};
  return definitions;
}

}  // namespace superstep::op
