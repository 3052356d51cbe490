// ONNX's random operators. ONNX leaves the numbers open; here they depend on the attributes and the position
// of the element alone, so that every run and every target draws the same.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/op/core/box.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/random.h"

namespace superstep::op {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 34;

ElementType floating_dtype(const Attributes& attributes, ElementType otherwise) {
  const ElementType element = element_attribute(attributes, "dtype", otherwise);
  require(is_floating(element), "attribute 'dtype' must name a floating-point type");
  return element;
}

Shape bounded(const Shape& shape) {
  require(shape.element_count() <= largest_count, "more than 2^34 random numbers are asked for");
  return shape;
}

void check_distribution(const Attributes& attributes) {
  for (const char* name : {"low", "high", "mean", "scale"})
    require(std::isfinite(attributes.number(name, 0)),
            fmt::format("attribute '{}' is not a finite number", name));
  require(attributes.number("low", 0) <= attributes.number("high", 1), "attribute 'low' is above 'high'");
  require(attributes.number("scale", 1) >= 0, "attribute 'scale' is negative");
}

std::vector<ValueType> infer_shaped(const InferContext& context) {
  check_distribution(context.attributes);
  const Shape shape = bounded(checked_shape(context.attributes.integers("shape")));
  return {{floating_dtype(context.attributes, ElementType::f32), shape}};
}

std::vector<ValueType> infer_like(const InferContext& context) {
  check_distribution(context.attributes);
  const ValueType& like = context.input(0);
  return {{floating_dtype(context.attributes, like.element), bounded(like.shape)}};
}

// Calls draw(i) for every element of the output's box with the stream where that element's numbers begin.
// Numbers come in groups of `group` elements that take `words` words together.
template <class Draw>
void for_each_number(const EvaluateContext& context, const Box& box, RandomStream& random, std::int64_t group,
                     std::uint64_t words, Draw&& draw) {
  std::int64_t expected = 0;
  for_each_in_box(box, context.output(0).shape(), [&](std::int64_t i, std::int64_t place) {
    if (place != expected) {
      random.seek(static_cast<std::uint64_t>(place / group) * words);
      for (std::int64_t before = place / group * group; before < place; ++before) draw(i);
    }
    expected = place + 1;
    draw(i);
  });
}

void evaluate_uniform_box(const EvaluateContext& context, const Box& box) {
  RandomStream random = number_stream(context.attributes, RandomPurpose::uniform);
  const double low = context.attributes.number("low", 0), high = context.attributes.number("high", 1);
  std::vector<double> y(static_cast<std::size_t>(context.output(0).element_count()));
  for_each_number(context, box, random, 1, 2,
                  [&](std::int64_t i) { y[static_cast<std::size_t>(i)] = random.uniform(low, high); });
  narrow(y, context.output(0));
}
void evaluate_uniform(const EvaluateContext& context) {
  evaluate_uniform_box(context, whole_box(context.output(0).shape()));
}

// Normal numbers come in pairs of two uniform ones.
void evaluate_normal_box(const EvaluateContext& context, const Box& box) {
  RandomStream random = number_stream(context.attributes, RandomPurpose::normal);
  const double mean = context.attributes.number("mean", 0), scale = context.attributes.number("scale", 1);
  std::vector<double> y(static_cast<std::size_t>(context.output(0).element_count()));
  for_each_number(context, box, random, 2, 4,
                  [&](std::int64_t i) { y[static_cast<std::size_t>(i)] = mean + scale * random.normal(); });
  narrow(y, context.output(0));
}
void evaluate_normal(const EvaluateContext& context) {
  evaluate_normal_box(context, whole_box(context.output(0).shape()));
}

std::vector<ValueType> infer_bernoulli(const InferContext& context) {
  require_floating(context, 0, "input");
  const ValueType& p = context.input(0);
  return {{element_attribute(context.attributes, "dtype", p.element), bounded(p.shape)}};
}

void evaluate_bernoulli_box(const EvaluateContext& context, const Box& box) {
  RandomStream random = number_stream(context.attributes, RandomPurpose::bernoulli);
  std::vector<double> y = widen<double>(context.input(0));
  for_each_number(context, box, random, 1, 2, [&](std::int64_t i) {
    double& value = y[static_cast<std::size_t>(i)];
    if (!(value >= 0 && value <= 1))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("input holds {}, which is not a probability", value));
    value = random.uniform() < value;
  });
  narrow(y, context.output(0));
}
void evaluate_bernoulli(const EvaluateContext& context) {
  evaluate_bernoulli_box(context, whole_box(context.output(0).shape()));
}

std::vector<ValueType> infer_multinomial(const InferContext& context) {
  require_floating(context, 0, "input");
  require_rank(context, 0, "input", 2);
  const std::int64_t samples = context.attributes.integer("sample_size", 1);
  require(samples >= 0 && samples <= largest_count, fmt::format("attribute 'sample_size' is {}", samples));
  require(context.input(0).shape[1] > 0, "input has no classes");
  const ElementType element = element_attribute(context.attributes, "dtype", ElementType::i32);
  require(is_integer(element), "attribute 'dtype' must name an integer type");
  return {{element, bounded({context.input(0).shape[0], samples})}};
}

// The class at which the running sum of a row's probabilities passes a uniform number.
void evaluate_multinomial_box(const EvaluateContext& context, const Box& box) {
  RandomStream random = number_stream(context.attributes, RandomPurpose::multinomial);
  random.seek(static_cast<std::uint64_t>(2 * box.begin[0] * box.whole[1]));
  const std::vector<double> scores = widen<double>(context.input(0));
  const Shape& shape = context.output(0).shape();
  const auto classes = static_cast<std::size_t>(context.input(0).shape()[1]);
  std::vector<std::int64_t> y;
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const auto own = std::span(scores).subspan(static_cast<std::size_t>(row) * classes, classes);
    const double largest = std::ranges::max(own);
    std::vector<double> sums;
    for (double score : own) sums.push_back((sums.empty() ? 0.0 : sums.back()) + std::exp(score - largest));
    for (std::int64_t i = 0; i < shape[1]; ++i) {
      const auto found = std::ranges::upper_bound(sums, random.uniform() * sums.back());
      y.push_back(std::min(found - sums.begin(), static_cast<std::ptrdiff_t>(classes) - 1));
    }
  }
  narrow(y, context.output(0));
}
void evaluate_multinomial(const EvaluateContext& context) {
  evaluate_multinomial_box(context, whole_box(context.output(0).shape()));
}

Definition random_definition(std::string_view name, int inputs, std::string_view attributes,
                             decltype(Definition::infer) infer, decltype(Definition::evaluate) evaluate,
                             decltype(Definition::evaluate_box) evaluate_box, int opset = 1) {
  const Traits traits{
      .elements = Elements::floating, .work = WorkKind::elementwise, .attributes = attributes};
  Definition definition = definition_without_slope(name, opset, inputs, traits, infer, evaluate);
  definition.evaluate_box = evaluate_box;
  definition.has_effects = true;
  return definition;
}

}  // namespace

// A seed is a float in ONNX: all its bits count.
RandomStream number_stream(const Attributes& attributes, RandomPurpose purpose) {
  return RandomStream(std::bit_cast<std::uint64_t>(attributes.number("seed", 0)), 0,
                      static_cast<std::uint32_t>(purpose));
}

Var random_uniform(Builder& builder, ElementType element, const Shape& shape, double low, double high,
                   double seed) {
  return builder.node1("RandomUniform", {},
                       {{"shape", shape.extents()},
                        {"dtype", onnx_number(element)},
                        {"low", low},
                        {"high", high},
                        {"seed", seed}});
}

Var random_normal(Builder& builder, ElementType element, const Shape& shape, double mean, double scale,
                  double seed) {
  return builder.node1("RandomNormal", {},
                       {{"shape", shape.extents()},
                        {"dtype", onnx_number(element)},
                        {"mean", mean},
                        {"scale", scale},
                        {"seed", seed}});
}

Var bernoulli(Var probability, double seed) {
  return probability.builder().node1("Bernoulli", {probability}, {{"seed", seed}});
}

Var multinomial(Var log_probabilities, std::int64_t samples, double seed) {
  return log_probabilities.builder().node1("Multinomial", {log_probabilities},
                                           {{"sample_size", samples}, {"seed", seed}});
}

std::span<const Definition> random_number_operators() {
  static const Definition definitions[] = {
      random_definition("RandomUniform", 0, "dtype high low seed shape", infer_shaped, evaluate_uniform,
                        evaluate_uniform_box),
      random_definition("RandomUniformLike", 1, "dtype high low seed", infer_like, evaluate_uniform,
                        evaluate_uniform_box),
      random_definition("RandomNormal", 0, "dtype mean scale seed shape", infer_shaped, evaluate_normal,
                        evaluate_normal_box),
      random_definition("RandomNormalLike", 1, "dtype mean scale seed", infer_like, evaluate_normal,
                        evaluate_normal_box),
      random_definition("Bernoulli", 1, "dtype seed", infer_bernoulli, evaluate_bernoulli,
                        evaluate_bernoulli_box, 15),
      random_definition("Multinomial", 1, "dtype sample_size seed", infer_multinomial, evaluate_multinomial,
                        evaluate_multinomial_box, 7),
  };
  return definitions;
}

}  // namespace superstep::op
