#include "superstep/op/product/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

enum Input : std::size_t { q_input, k_input, v_input, mask_input, past_key, past_value, lengths_input };

// [batch, heads, length, head size], whatever the rank given.
Shape head_shape(const Shape& shape, std::int64_t heads, const char* name) {
  if (shape.rank() == 4) return shape;
  require(shape.rank() == 3, fmt::format("input {} is {}, expected rank 3 or 4", name, to_string(shape)));
  require(heads >= 1 && shape[2] % heads == 0,
          fmt::format("input {} {} cannot be divided into {} heads", name, to_string(shape), heads));
  return {shape[0], heads, shape[1], shape[2] / heads};
}

struct Heads {
  Shape q, k, v;        // [batch, heads, length, head size]
  std::int64_t keys;    // with those of the past
  std::int64_t before;  // keys of the past
};

Heads heads_of(const Attributes& attributes, const Shape& q, const Shape& k, const Shape& v,
               std::int64_t past) {
  Heads h{head_shape(q, attributes.integer("q_num_heads", 0), "Q"),
          head_shape(k, attributes.integer("kv_num_heads", 0), "K"),
          head_shape(v, attributes.integer("kv_num_heads", 0), "V"), 0, past};
  h.keys = h.k[2] + past;
  require(h.k[3] == h.q[3], fmt::format("heads of Q have {} elements, those of K {}", h.q[3], h.k[3]));
  require(h.k[0] == h.q[0] && h.v[0] == h.q[0], "inputs Q, K and V have different batch sizes");
  require(h.k[1] == h.v[1] && h.k[2] == h.v[2], "inputs K and V have different heads or lengths");
  require(h.k[1] > 0 && h.q[1] % h.k[1] == 0,
          fmt::format("{} heads of Q cannot share {} heads of K", h.q[1], h.k[1]));
  return h;
}

Shape score_shape(const Heads& h) { return {h.q[0], h.q[1], h.q[2], h.keys}; }

std::int64_t past_length(const InferContext& context) {
  require(context.has(past_key) == context.has(past_value), "inputs past_key and past_value go together");
  if (!context.has(past_key)) return 0;
  require_rank(context, past_key, "past_key", 4);
  return context.input(past_key).shape[2];
}

void check_mask(const InferContext& context, const Heads& h) {
  if (!context.has(mask_input)) return;
  const Shape& mask = context.input(mask_input).shape;
  Extents extents = mask.extents();
  if (!extents.empty() && extents.back() != 1) extents.back() = h.keys;  // a shorter mask is filled up
  require(mask.rank() >= 1 && mask[mask.rank() - 1] <= h.keys &&
              checked_broadcast(Shape(extents), score_shape(h), "mask and scores") == score_shape(h),
          fmt::format("input attn_mask is {}, expected a shape that broadcasts to {}", to_string(mask),
                      to_string(score_shape(h))));
}

std::int64_t window_attribute(const Attributes& attributes, const char* name) {
  const std::int64_t size = attributes.integer(name, -1);
  require(size >= -1 && size < std::int64_t{1} << 40,
          fmt::format("attribute '{}' is {}, expected -1 or more", name, size));
  return size;
}

std::vector<ValueType> infer_attention(const InferContext& context) {
  require_floating(context, q_input, "Q");
  require_same_element(context, k_input, "K", q_input, "Q");
  const Shape &q = context.input(q_input).shape, &k = context.input(k_input).shape,
              &v = context.input(v_input).shape;
  const Heads h = heads_of(context.attributes, q, k, v, past_length(context));
  check_mask(context, h);
  for (const char* name : {"left_window_size", "right_window_size"})
    window_attribute(context.attributes, name);
  if (context.has(past_key)) {
    require_shape(context, past_key, "past_key", {h.k[0], h.k[1], h.before, h.k[3]});
    require_shape(context, past_value, "past_value", {h.v[0], h.v[1], h.before, h.v[3]});
  }
  if (context.has(lengths_input)) {
    require_integer(context, lengths_input, "nonpad_kv_seqlen");
    require_shape(context, lengths_input, "nonpad_kv_seqlen", {h.q[0]});
  }
  const ElementType element = context.input(q_input).element;
  const Shape y =
      q.rank() == 3 ? Shape{h.q[0], h.q[2], h.q[1] * h.v[3]} : Shape{h.q[0], h.q[1], h.q[2], h.v[3]};
  return {{element, y},
          {element, Shape{h.k[0], h.k[1], h.keys, h.k[3]}},
          {context.input(v_input).element, Shape{h.v[0], h.v[1], h.keys, h.v[3]}},
          {element, score_shape(h)}};
}

Var with_heads(Var x, const Shape& shape) {
  if (x.shape().rank() == 4) return x;
  return transpose(reshape(x, {shape[0], shape[2], shape[1], shape[3]}), {0, 2, 1, 3});
}

// Each key head as often as query heads share it, one after the other.
Var shared_heads(Var x, std::int64_t query_heads) {
  const Shape shape = x.shape();
  const std::int64_t copies = query_heads / shape[1];
  if (copies == 1) return x;
  const Var apart = reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  return reshape(expand(apart, {shape[0], shape[1], copies, shape[2], shape[3]}),
                 {shape[0], query_heads, shape[2], shape[3]});
}

Var minus_infinity(Var like) { return constant_like(like, -std::numeric_limits<double>::infinity()); }

Var counted(Builder& builder, std::int64_t count, Shape shape, std::int64_t offset = 0) {
  Extents numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), offset);
  return reshape(builder.integers(numbers), shape);
}

// How many keys of each sample are there: [batch, 1, 1, 1].
Var key_counts(const DerivativeContext& context, const Heads& h) {
  const Var counts =
      indices_within(context.inputs[lengths_input], {.count = h.keys + 1, .what = "input nonpad_kv_seqlen"});
  return reshape(cast(counts, ElementType::i64), {h.q[0], 1, 1, 1});
}

// The position of each query among the keys: after those that came before the queries.
Var query_positions(const DerivativeContext& context, const Heads& h) {
  if (!context.has(past_key) && context.has(lengths_input)) {
    const Var lengths = key_counts(context, h);
    return counted(context.builder, h.q[2], {h.q[2], 1}, -h.q[2]) + lengths;
  }
  return counted(context.builder, h.q[2], {h.q[2], 1}, h.before);
}

// The keys a query may look at: up to `right` positions after its own, or down to `left` before it.
Var not_after(const DerivativeContext& context, const Heads& h, std::int64_t right) {
  return less_or_equal(counted(context.builder, h.keys, {1, h.keys}, -right), query_positions(context, h));
}
Var not_before(const DerivativeContext& context, const Heads& h, std::int64_t left) {
  return greater_or_equal(counted(context.builder, h.keys, {1, h.keys}, left), query_positions(context, h));
}

Var masked(Var scores, Var mask) {
  const std::int64_t missing = scores.shape()[3] - mask.shape()[mask.shape().rank() - 1];
  const bool adds = is_floating(mask.element());
  if (missing > 0 && mask.shape()[mask.shape().rank() - 1] != 1) {
    Extents pads(static_cast<std::size_t>(2 * mask.shape().rank()), 0);
    pads.back() = missing;
    mask = pad(mask, pads, adds ? -std::numeric_limits<double>::infinity() : 0);
  }
  return adds ? scores + mask : where(mask, scores, minus_infinity(scores));
}

bool has_masks(const DerivativeContext& context) {
  const Attributes& a = context.attributes;
  return context.has(mask_input) || context.has(lengths_input) || a.integer("is_causal", 0) ||
         window_attribute(a, "left_window_size") >= 0 || window_attribute(a, "right_window_size") >= 0;
}

// softmax, with zeros for a query that may look at no key.
Var attention_weights(const DerivativeContext& context, Var scores) {
  if (!has_masks(context) || scores.shape().element_count() == 0) return softmax(scores);
  const Var none = equal(reduce_max(scores, {-1}, true), minus_infinity(scores));
  const Var zero = constant_like(scores, 0);
  return where(none, zero, softmax(where(none, zero, scores)));
}

Var all_masks(const DerivativeContext& context, const Heads& h, Var scores) {
  if (context.has(mask_input)) scores = masked(scores, context.inputs[mask_input]);
  if (context.attributes.integer("is_causal", 0)) scores = masked(scores, not_after(context, h, 0));
  const std::int64_t left = window_attribute(context.attributes, "left_window_size");
  const std::int64_t right = window_attribute(context.attributes, "right_window_size");
  if (left >= 0) scores = masked(scores, not_before(context, h, left));
  if (right >= 0) scores = masked(scores, not_after(context, h, right));
  if (context.has(lengths_input)) {
    const Var lengths = key_counts(context, h);
    scores = masked(scores, less(counted(context.builder, h.keys, {1, 1, 1, h.keys}), lengths));
  }
  return scores;
}

std::vector<Var> decompose_attention(const DerivativeContext& context) {
  const std::int64_t past = context.has(past_key) ? context.inputs[past_key].shape()[2] : 0;
  const Heads h = heads_of(context.attributes, context.inputs[q_input].shape(),
                           context.inputs[k_input].shape(), context.inputs[v_input].shape(), past);
  const Var q = with_heads(context.inputs[q_input], h.q);
  Var k = with_heads(context.inputs[k_input], h.k), v = with_heads(context.inputs[v_input], h.v);
  if (past > 0) {
    k = concat(std::vector{context.inputs[past_key], k}, 2);
    v = concat(std::vector{context.inputs[past_value], v}, 2);
  }
  const double scale = context.attributes.number("scale", 1 / std::sqrt(static_cast<double>(h.q[3])));
  const double root = std::sqrt(scale), cap = context.attributes.number("softcap", 0);
  const Var product = matmul(q * root, transpose(shared_heads(k, h.q[1]) * root, {0, 1, 3, 2}));
  const Var capped = cap > 0 ? tanh(product / cap) * cap : product;
  const Var scores = all_masks(context, h, capped), weights = attention_weights(context, scores);
  Var y = matmul(weights, shared_heads(v, h.q[1]));
  if (context.inputs[q_input].shape().rank() == 3)
    y = reshape(transpose(y, {0, 2, 1, 3}), {h.q[0], h.q[2], h.q[1] * h.v[3]});
  const Var stages[] = {product, capped, scores, weights};
  const std::int64_t stage = context.attributes.integer("qk_matmul_output_mode", 0);
  require(stage >= 0 && stage < 4, "attribute 'qk_matmul_output_mode' must lie in 0 to 3");
  return {y, k, v, stages[stage]};
}

// The rotated part, its pairs, and the rest of each head.
struct RotaryShape {
  Shape heads;        // [batch, heads, length, head size]
  std::int64_t part;  // d
};

RotaryShape rotary_shape(const Attributes& attributes, const Shape& x) {
  RotaryShape r{head_shape(x, attributes.integer("num_heads", 0), "X"),
                attributes.integer("rotary_embedding_dim", 0)};
  if (r.part == 0) r.part = r.heads[3];
  require(r.part > 0 && r.part <= r.heads[3] && r.part % 2 == 0,
          fmt::format("attribute 'rotary_embedding_dim' is {}, expected an even number up to {}", r.part,
                      r.heads[3]));
  return r;
}

std::vector<ValueType> infer_rotary(const InferContext& context) {
  require_floating(context, 0, "X");
  const RotaryShape r = rotary_shape(context.attributes, context.input(0).shape);
  for (std::size_t i : {1u, 2u}) {
    const char* name = i == 1 ? "cos_cache" : "sin_cache";
    require_same_element(context, i, name, 0, "X");
    if (context.has(3))
      require_shape(context, i, name, {context.input(1).shape[0], r.part / 2});
    else
      require_shape(context, i, name, {r.heads[0], r.heads[2], r.part / 2});
  }
  if (context.has(3)) {
    require_integer(context, 3, "position_ids");
    require_shape(context, 3, "position_ids", {r.heads[0], r.heads[2]});
  }
  return {context.input(0)};
}

std::vector<Var> decompose_rotary(const DerivativeContext& context) {
  const RotaryShape r = rotary_shape(context.attributes, context.inputs[0].shape());
  const std::int64_t half = r.part / 2, size = r.heads[3];
  const Var x = with_heads(context.inputs[0], r.heads);
  Var places;
  if (context.has(3))
    places = indices_within(context.inputs[3],
                            {.count = context.inputs[1].shape()[0], .what = "input position_ids"});
  const auto angles = [&](std::size_t i) {
    const Var cache =
        context.has(3) ? context.builder.node1("Gather", {context.inputs[i], places}) : context.inputs[i];
    return unsqueeze(cache, {1});  // [batch, 1, length, d / 2]
  };
  const Var c = angles(1), s = angles(2);
  const bool interleaved = context.attributes.integer("interleaved", 0) != 0;
  const auto part = [&](std::int64_t k) {
    return interleaved ? slice(x, {k}, {r.part}, {3}, {2}) : slice(x, {k * half}, {(k + 1) * half}, {3});
  };
  const Var a = part(0), b = part(1), real = a * c - b * s, imaginary = a * s + b * c;
  Var turned = interleaved ? reshape(concat(std::vector{unsqueeze(real, {4}), unsqueeze(imaginary, {4})}, 4),
                                     {r.heads[0], r.heads[1], r.heads[2], r.part})
                           : concat(std::vector{real, imaginary}, 3);
  if (r.part < size) turned = concat(std::vector{turned, slice(x, {r.part}, {size}, {3})}, 3);
  if (context.inputs[0].shape().rank() == 4) return {turned};
  return {reshape(transpose(turned, {0, 2, 1, 3}), context.inputs[0].shape())};
}

}  // namespace

Var attention(Var q, Var k, Var v, Var mask, const AttentionAttributes& a) {
  Attributes attributes{{"is_causal", std::int64_t{a.causal}}};
  if (a.query_heads) attributes.set("q_num_heads", a.query_heads);
  if (a.key_heads) attributes.set("kv_num_heads", a.key_heads);
  if (a.scale != 0) attributes.set("scale", a.scale);
  if (a.softcap != 0) attributes.set("softcap", a.softcap);
  return q.builder().node1("Attention", {q, k, v, mask}, std::move(attributes));
}

Var rotary_embedding(Var x, Var cosines, Var sines, Var positions, const RotaryAttributes& a) {
  return x.builder().node1("RotaryEmbedding", {x, cosines, sines, positions},
                           {{"interleaved", std::int64_t{a.interleaved}},
                            {"rotary_embedding_dim", a.dimension},
                            {"num_heads", a.heads}});
}

std::span<const Definition> attention_operators() {
  static const Definition definitions[] = {
      composite<decompose_attention>(
          {"Attention", 24, 3, 7, 4}, infer_attention,
          {.elements = Elements::floating,
           .work = WorkKind::attention,
           .batch = batch::attention,
           .attributes = "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
                         "right_window_size scale softcap softmax_precision"}),
      composite<decompose_rotary>({"RotaryEmbedding", 23, 3, 4}, infer_rotary,
                                  {.elements = Elements::floating,
                                   .work = WorkKind::movement,
                                   .attributes = "interleaved num_heads rotary_embedding_dim"}),
  };
  return definitions;
}

}  // namespace superstep::op
