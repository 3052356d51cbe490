#include "superstep/op/elementwise/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/op/batch/rules.h"
#include "superstep/op/core/box.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {
namespace {

double keep_of(const Attributes& attributes) {
  const double keep = attributes.number("keep");
  require(keep > 0 && keep <= 1, fmt::format("attribute 'keep' is {}, expected a probability above 0", keep));
  return keep;
}

std::uint32_t stream_of(const Attributes& attributes) {
  const std::int64_t stream = attributes.integer("stream", 0);
  require(stream >= 0 && stream <= 0xffffffff, "attribute 'stream' must lie in [0, 2^32)");
  return static_cast<std::uint32_t>(stream);
}

// What is drawn by a counter: the counter, the stream, and what comes out.
std::vector<ValueType> infer_drawn(const InferContext& context) {
  require_scalar(context, 0, "counter");
  require(context.input(0).element == ElementType::i64,
          "input counter is " + to_string(context.input(0)) + ", expected i64");
  stream_of(context.attributes);
  const ElementType element = element_attribute(context.attributes, "dtype", ElementType::f32);
  require(is_floating(element), "attribute 'dtype' must name a floating-point type");
  const Shape shape = checked_shape(context.attributes.integers("shape"));
  require(shape.element_count() <= std::int64_t{1} << 34, "the result has more than 2^34 elements");
  return {{element, shape}};
}

std::vector<ValueType> infer_random_mask(const InferContext& context) {
  keep_of(context.attributes);
  return infer_drawn(context);
}

void evaluate_random_mask_box(const EvaluateContext& context, const Box& box) {
  const double keep = keep_of(context.attributes);
  const std::uint64_t threshold = keep_threshold(keep);
  const auto seed = static_cast<std::uint64_t>(context.attributes.integer("seed", 0));
  const auto first = static_cast<std::uint64_t>(integer_of(context.input(0)));
  const std::uint32_t stream = stream_of(context.attributes);
  const Shape& shape = context.output(0).shape();
  std::vector<double> mask(static_cast<std::size_t>(shape.element_count()));
  const std::int64_t rows = box.whole.rank() > 0 ? box.whole[0] : 1;
  const std::int64_t length = box.whole.element_count() / std::max<std::int64_t>(1, rows);
  RandomStream words(seed);
  std::int64_t expected = -1;  // the place whose word is the next one
  for_each_in_box(box, shape, [&](std::int64_t i, std::int64_t place) {
    if (place != expected || place % length == 0) {
      words = RandomStream(seed, first + static_cast<std::uint64_t>(place / length), stream);
      words.seek(static_cast<std::uint64_t>(place % length));
    }
    expected = place + 1;
    mask[static_cast<std::size_t>(i)] = words.next_u32() < threshold ? 1.0 / keep : 0.0;
  });
  narrow(mask, context.output(0));
}
void evaluate_random_mask(const EvaluateContext& context) {
  evaluate_random_mask_box(context, whole_box(context.output(0).shape()));
}

double fraction_of(std::uint32_t word) { return (static_cast<double>(word >> 9) + 0.5) * 0x1p-23; }

void evaluate_random_normal_box(const EvaluateContext& context, const Box& box) {
  RandomStream words(static_cast<std::uint64_t>(context.attributes.integer("seed", 0)),
                     static_cast<std::uint64_t>(integer_of(context.input(0))), stream_of(context.attributes));
  std::vector<double> numbers(static_cast<std::size_t>(context.output(0).element_count()));
  for_each_in_box(box, context.output(0).shape(), [&](std::int64_t i, std::int64_t place) {
    words.seek(static_cast<std::uint64_t>(place - place % 2));
    const double u = fraction_of(words.next_u32()), t = fraction_of(words.next_u32());
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * t;
    numbers[static_cast<std::size_t>(i)] = radius * (place % 2 == 0 ? std::cos(angle) : std::sin(angle));
  });
  narrow(numbers, context.output(0));
}
void evaluate_random_normal(const EvaluateContext& context) {
  evaluate_random_normal_box(context, whole_box(context.output(0).shape()));
}

// Dropout as ONNX has it: the identity unless training_mode is true.
std::vector<ValueType> infer_dropout(const InferContext& context) {
  require_floating(context, 0, "data");
  if (context.has(1)) require_scalar(context, 1, "ratio");
  if (context.has(1)) require_floating(context, 1, "ratio");
  if (context.has(2)) require_scalar(context, 2, "training_mode");
  if (context.has(2)) require_boolean(context, 2, "training_mode");
  return {context.input(0), {ElementType::boolean, context.input(0).shape}};
}

// The probability of dropping: 0 when not training.
double drop_ratio(const Tensor* ratio, const Tensor* training) {
  if (!training || training->at(0) == 0) return 0;
  const double value = ratio ? ratio->at(0) : 0.5;
  if (!(value >= 0 && value < 1))
    throw Error(ErrorCode::invalid_argument, fmt::format("input ratio is {}, expected one in [0, 1)", value));
  return value;
}

void evaluate_dropout_box(const EvaluateContext& context, const Box& box) {
  const double ratio =
      drop_ratio(context.has(1) ? &context.input(1) : nullptr, context.has(2) ? &context.input(2) : nullptr);
  const std::uint64_t threshold = keep_threshold(1 - ratio);
  RandomStream words(static_cast<std::uint64_t>(context.attributes.integer("seed", 0)));
  std::vector<double> y = widen<double>(context.input(0)), mask(y.size());
  std::int64_t expected = 0;
  for_each_in_box(box, context.input(0).shape(), [&](std::int64_t number, std::int64_t place) {
    if (place != expected) words.seek(static_cast<std::uint64_t>(place));
    expected = place + 1;
    const auto i = static_cast<std::size_t>(number);
    mask[i] = words.next_u32() < threshold;
    y[i] = mask[i] != 0 ? y[i] / (1 - ratio) : 0;
  });
  if (context.wants(0)) narrow(y, context.output(0));
  if (context.wants(1)) narrow(mask, context.output(1));
}
void evaluate_dropout(const EvaluateContext& context) {
  evaluate_dropout_box(context, whole_box(context.input(0).shape()));
}

Var scaled_mask(const DerivativeContext& context, Var t) {
  const Tensor* training = context.has(2) ? constant_data(context.inputs[2]) : nullptr;
  const Tensor* ratio = context.has(1) ? constant_data(context.inputs[1]) : nullptr;
  if (!context.has(2) || (training && training->at(0) == 0)) return t;
  if (!training || (context.has(1) && !ratio))
    throw Error(ErrorCode::unsupported, "inputs ratio and training_mode must be constant for a derivative");
  if (context.outputs.size() < 2 || !context.outputs[1].valid())
    throw Error(ErrorCode::unsupported, "the mask output is needed for a derivative in training mode");
  return t * cast(context.outputs[1], t.element()) * (1.0 / (1.0 - drop_ratio(ratio, training)));
}

std::vector<Var> vjp_dropout(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  if (cotangents[0].valid()) result[0] = scaled_mask(context, cotangents[0]);
  return result;
}

std::vector<Var> jvp_dropout(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> result(context.outputs.size());
  if (tangents[0].valid()) result[0] = scaled_mask(context, tangents[0]);
  return result;
}

std::vector<ValueType> infer_depth(const InferContext& context) {
  const double ratio = context.attributes.number("ratio", 0);
  require(ratio >= 0 && ratio < 1, fmt::format("attribute 'ratio' is {}, expected one in [0, 1)", ratio));
  require_floating(context, 0, "x");
  require(context.input(0).shape.rank() > 0, "input 0 has no axis of samples");
  return {context.input(0)};
}
std::vector<Var> decompose_depth(const DerivativeContext& context) { return {identity(context.inputs[0])}; }

}  // namespace

std::uint64_t keep_threshold(double keep) { return static_cast<std::uint64_t>(std::llround(keep * 0x1p32)); }

Var random_mask(Var counter, ElementType element, const Shape& shape,
                const RandomMaskAttributes& attributes) {
  return counter.builder().node1("superstep.RandomMask", {counter},
                                 {{"seed", static_cast<std::int64_t>(attributes.seed)},
                                  {"stream", std::int64_t{attributes.stream}},
                                  {"keep", attributes.keep},
                                  {"shape", shape.extents()},
                                  {"dtype", onnx_number(element)}});
}

Var drawn_mask(Builder& builder, const Attributes& attributes) {
  const double keep = keep_of(attributes);
  const ElementType element = element_attribute(attributes, "dtype", ElementType::f32);
  RandomStream spread(static_cast<std::uint64_t>(attributes.integer("seed", 0)), 0, stream_of(attributes));
  const double seed = spread.next_u32() >> 8;  // 24 bits: the attribute is an f32
  const Var drawn =
      random_uniform(builder, ElementType::f32, Shape(attributes.integers("shape")), 0, 1, seed);
  const Var kept = less(drawn, builder.scalar(ElementType::f32, keep));
  return where(kept, builder.scalar(element, 1.0 / keep), builder.scalar(element, 0));
}

Var random_normal(Var counter, ElementType element, const Shape& shape, std::uint64_t seed,
                  std::uint32_t stream) {
  return counter.builder().node1("superstep.RandomNormal", {counter},
                                 {{"seed", static_cast<std::int64_t>(seed)},
                                  {"stream", std::int64_t{stream}},
                                  {"shape", shape.extents()},
                                  {"dtype", onnx_number(element)}});
}

Var dropout(Var x, double ratio, Var counter, std::uint64_t seed, std::uint32_t stream) {
  return x * random_mask(counter, x.element(), x.shape(), {seed, stream, 1.0 - ratio});
}

Var stochastic_depth(Var x, double ratio) {
  return x.builder().node1("superstep.StochasticDepth", {x}, {{"ratio", ratio}});
}

std::span<const Definition> random_operators() {
  static const Definition definitions[] = {
      {.name = "superstep.RandomMask",
       .since_opset = 0,
       .traits = {.elements = Elements::counter, .work = WorkKind::elementwise, .by_counter = true},
       .infer = infer_random_mask,
       .evaluate = evaluate_random_mask,
       .evaluate_box = evaluate_random_mask_box,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "superstep.RandomNormal",
       .since_opset = 0,
       .traits = {.elements = Elements::counter, .work = WorkKind::elementwise},
       .infer = infer_drawn,
       .evaluate = evaluate_random_normal,
       .evaluate_box = evaluate_random_normal_box,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      composite<decompose_depth>({"superstep.StochasticDepth", 0}, infer_depth,
                                 {.elements = Elements::floating,
                                  .work = WorkKind::view,
                                  .batch = batch::per_picture,
                                  .precision = Precision::follows}),
      {.name = "Dropout",
       .since_opset = 13,
       .max_inputs = 3,
       .max_outputs = 2,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::elementwise,
                  .batch = batch::per_picture,
                  .attributes = "is_test ratio seed",
                  .precision = Precision::follows},
       .infer = infer_dropout,
       .evaluate = evaluate_dropout,
       .evaluate_box = evaluate_dropout_box,
       .vjp = vjp_dropout,
       .jvp = jvp_dropout,
       .has_effects = true},
  };
  return definitions;
}

}  // namespace superstep::op
