// Layers that carry a state along a sequence (operator set 27): linear attention and causal convolution.
#include <fmt/format.h>

#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/attention.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

enum Input : std::size_t { q_input, k_input, v_input, state_input, decay_input, beta_input };

struct Rule {
  bool gated, delta;  // the state decays; what is written is the difference from what it holds
};
Rule rule_of(const Attributes& attributes) {
  const std::string rule = attributes.text("update_rule", "gated_delta");
  require(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
          fmt::format("attribute 'update_rule' is '{}', expected linear, gated, delta or gated_delta", rule));
  return {rule.starts_with("gated"), rule.ends_with("delta")};
}

struct Sizes {
  std::int64_t batch, length, query_heads, heads, key, value;  // `key`, `value`: elements of a head
};
Sizes sizes_of(const Attributes& attributes, const Shape& q, const Shape& k, const Shape& v) {
  Sizes s{q[0], q[1], attributes.integer("q_num_heads"), attributes.integer("kv_num_heads"), 0, 0};
  require(s.heads >= 1 && s.query_heads >= 1 && s.query_heads % s.heads == 0,
          fmt::format("attributes 'q_num_heads' {} must be a multiple of 'kv_num_heads' {}", s.query_heads,
                      s.heads));
  require(
      q[2] % s.query_heads == 0 && v[2] % s.heads == 0,
      fmt::format("inputs query {} and value {} cannot be divided into heads", to_string(q), to_string(v)));
  s.key = q[2] / s.query_heads;
  s.value = v[2] / s.heads;
  require(
      k == Shape({s.batch, s.length, s.heads * s.key}),
      fmt::format("input key is {}, expected [{},{},{}]", to_string(k), s.batch, s.length, s.heads * s.key));
  require(v[0] == s.batch && v[1] == s.length, fmt::format("input value is {}", to_string(v)));
  return s;
}

// decay: [B, T, heads] or [B, T, heads * key]; beta: [B, T, heads] or [B, T, 1].
void check_gates(const InferContext& context, const Sizes& s) {
  const Rule rule = rule_of(context.attributes);
  require(context.has(decay_input) == rule.gated,
          "input decay belongs to the update rules gated and gated_delta");
  require(context.has(beta_input) == rule.delta,
          "input beta belongs to the update rules delta and gated_delta");
  const auto check = [&](std::size_t input, const char* name, std::int64_t one, std::int64_t other) {
    if (!context.has(input)) return;
    require_same_element(context, input, name, q_input, "query");
    const Shape& shape = context.input(input).shape;
    require(shape == Shape({s.batch, s.length, one}) || shape == Shape({s.batch, s.length, other}),
            fmt::format("input {} is {}, expected [{},{},{}] or [{},{},{}]", name, to_string(shape), s.batch,
                        s.length, one, s.batch, s.length, other));
  };
  check(decay_input, "decay", s.heads, s.heads * s.key);
  check(beta_input, "beta", s.heads, 1);
}

std::vector<ValueType> infer_linear_attention(const InferContext& context) {
  require_floating(context, q_input, "query");
  for (std::size_t i : {q_input, k_input, v_input}) {
    require_rank(context, i, i == q_input ? "query" : i == k_input ? "key" : "value", 3);
    require_same_element(context, i, i == k_input ? "key" : "value", q_input, "query");
  }
  const Sizes s = sizes_of(context.attributes, context.input(q_input).shape, context.input(k_input).shape,
                           context.input(v_input).shape);
  check_gates(context, s);
  const Shape state{s.batch, s.heads, s.key, s.value};
  if (context.has(state_input)) require_floating(context, state_input, "past_state");
  if (context.has(state_input)) require_shape(context, state_input, "past_state", state);
  const ElementType element = context.input(q_input).element;
  return {{element, Shape{s.batch, s.length, s.query_heads * s.value}},
          {context.has(state_input) ? context.input(state_input).element : element, state}};
}

// One step of a packed sequence: [batch, heads, rest].
Var step_of(Var x, std::int64_t t, std::int64_t heads) {
  const Shape& shape = x.shape();
  return reshape(slice(x, {t}, {t + 1}, {1}), {shape[0], heads, shape[2] / heads});
}

Var as_column(Var x) { return reshape(x, {x.shape()[0], x.shape()[1], x.shape()[2], 1}); }
Var as_row(Var x) { return reshape(x, {x.shape()[0], x.shape()[1], 1, x.shape()[2]}); }

// S' = exp(g) S + k (x) (beta (v - S'k)), as the rule has them. S is [batch, heads, key, value].
Var next_state(const DerivativeContext& context, const Sizes& s, Var state, std::int64_t t) {
  const Rule rule = rule_of(context.attributes);
  const Var k = step_of(context.inputs[k_input], t, s.heads);
  Var v = as_row(step_of(context.inputs[v_input], t, s.heads));
  if (rule.gated) state = state * exp(as_column(step_of(context.inputs[decay_input], t, s.heads)));
  if (rule.delta) {
    const Var beta = context.inputs[beta_input];
    const std::int64_t heads = beta.shape()[2];
    v = (v - matmul(as_row(k), state)) * reshape(slice(beta, {t}, {t + 1}, {1}), {s.batch, heads, 1, 1});
  }
  return state + as_column(k) * v;
}

Var for_query_heads(Var state, const Sizes& s) {
  const std::int64_t copies = s.query_heads / s.heads;
  if (copies == 1) return state;
  const Var apart = reshape(state, {s.batch, s.heads, 1, s.key, s.value});
  return reshape(expand(apart, {s.batch, s.heads, copies, s.key, s.value}),
                 {s.batch, s.query_heads, s.key, s.value});
}

// Step by step: the definition that chunked algorithms are checked against.
std::vector<Var> decompose_linear_attention(const DerivativeContext& context) {
  const Var q = context.inputs[q_input];
  const Sizes s = sizes_of(context.attributes, q.shape(), context.inputs[k_input].shape(),
                           context.inputs[v_input].shape());
  const double given = context.attributes.number("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(s.key)) : given;
  Var state = context.has(state_input)
                  ? cast(context.inputs[state_input], q.element())
                  : constant_of_shape(context.builder, q.element(), {s.batch, s.heads, s.key, s.value});
  std::vector<Var> outputs;
  for (std::int64_t t = 0; t < s.length; ++t) {
    state = next_state(context, s, state, t);
    const Var y = matmul(as_row(step_of(q, t, s.query_heads) * scale), for_query_heads(state, s));
    outputs.push_back(reshape(y, {s.batch, 1, s.query_heads * s.value}));
  }
  const Var y = outputs.empty() ? constant_of_shape(context.builder, q.element(), context.outputs[0].shape())
                                : concat(outputs, 1);
  return {y, cast(state, context.has(state_input) ? context.inputs[state_input].element() : q.element())};
}

// input [N, C, length], weight [C, 1, k], bias [C], past state [N, C, k - 1].
std::vector<ValueType> infer_causal(const InferContext& context) {
  require_floating(context, 0, "input");
  require_rank(context, 0, "input", 3);
  require_rank(context, 1, "weight", 3);
  const Shape &x = context.input(0).shape, &w = context.input(1).shape;
  require_shape(context, 1, "weight", {x[1], 1, w[2]});
  require(w[2] >= 1, "input weight has no elements");
  const Shape state{x[0], x[1], w[2] - 1};
  if (context.has(2)) require_shape(context, 2, "bias", {x[1]});
  if (context.has(3)) require_shape(context, 3, "past_state", state);
  const char* names[] = {"input", "weight", "bias", "past_state"};
  for (std::size_t i = 1; i < 4; ++i)
    if (context.has(i)) require_same_element(context, i, names[i], 0, "input");
  const std::string activation = context.attributes.text("activation", "none");
  require(activation == "none" || activation == "silu" || activation == "swish",
          fmt::format("attribute 'activation' is '{}', expected none, silu or swish", activation));
  return {context.input(0), {context.input(0).element, state}};
}

std::vector<Var> decompose_causal(const DerivativeContext& context) {
  const Var x = context.inputs[0], w = context.inputs[1];
  const Shape& s = x.shape();
  const std::int64_t before = w.shape()[2] - 1;
  const Var past = context.has(3) ? context.inputs[3]
                                  : constant_of_shape(context.builder, x.element(), {s[0], s[1], before});
  const Var whole = before == 0 ? x : concat(std::vector{past, x}, 2);
  const Var y = conv(whole, w, context.has(2) ? context.inputs[2] : Var(), {.group = s[1]});
  const std::string activation = context.attributes.text("activation", "none");
  return {activation == "none" ? y : swish(y), slice(whole, {s[2]}, {s[2] + before}, {2})};
}

}  // namespace

std::span<const Definition> sequence_state_operators() {
  static const Definition definitions[] = {
      composite<decompose_linear_attention>(
          {"LinearAttention", 27, 3, 6, 2}, infer_linear_attention,
          {.elements = Elements::floating,
           .work = WorkKind::elementwise,
           .attributes = "chunk_size kv_num_heads q_num_heads scale update_rule"}),
      composite<decompose_causal>(
          {"CausalConvWithState", 27, 2, 4, 2}, infer_causal,
          {.elements = Elements::floating, .work = WorkKind::elementwise, .attributes = "activation"}),
  };
  return definitions;
}

}  // namespace superstep::op
