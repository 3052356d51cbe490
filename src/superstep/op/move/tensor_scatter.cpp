// TensorScatter: new elements written into a cache along its sequence axis.
#include <fmt/format.h>

#include <numeric>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/integer.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

bool circular(const Attributes& attributes) {
  const std::string mode = attributes.text("mode", "linear");
  require(mode == "linear" || mode == "circular",
          fmt::format("attribute 'mode' is '{}', expected linear or circular", mode));
  return mode == "circular";
}

int sequence_axis(const Attributes& attributes, const Shape& cache) {
  const int axis = checked_axis(attributes.integer("axis", -2), cache.rank(), "attribute 'axis'");
  require(axis > 0, "attribute 'axis' names the batch axis");
  return axis;
}

std::vector<ValueType> infer_tensor_scatter(const InferContext& context) {
  circular(context.attributes);
  require_min_rank(context, 0, "past_cache", 2);
  require_same_element(context, 1, "update", 0, "past_cache");
  const Shape &cache = context.input(0).shape, &update = context.input(1).shape;
  const int axis = sequence_axis(context.attributes, cache);
  require_rank(context, 1, "update", cache.rank());
  Extents expected = cache.extents();
  expected[static_cast<std::size_t>(axis)] = update[axis];
  require(update == Shape(expected) && update[axis] <= cache[axis],
          fmt::format("input update is {}, expected past_cache's {} with a shorter axis {}",
                      to_string(update), to_string(cache), axis));
  if (context.has(2)) require_integer(context, 2, "write_indices");
  if (context.has(2)) require_shape(context, 2, "write_indices", {cache[0]});
  return {context.input(0)};
}

std::vector<Var> decompose_tensor_scatter(const DerivativeContext& context) {
  const Var cache = context.inputs[0], update = context.inputs[1];
  const auto axis = static_cast<std::size_t>(sequence_axis(context.attributes, cache.shape()));
  const auto rank = static_cast<std::size_t>(cache.shape().rank());
  const std::int64_t length = update.shape()[static_cast<int>(axis)];
  Extents steps(static_cast<std::size_t>(length)), along(rank, 1), batch(rank, 1);
  std::iota(steps.begin(), steps.end(), 0);
  along[axis] = length;
  batch[0] = cache.shape()[0];
  Var places = reshape(context.builder.integers(steps), Shape(along));
  const bool wraps = circular(context.attributes);
  if (context.has(2)) {
    Var first = context.inputs[2];
    const std::int64_t room = cache.shape()[static_cast<int>(axis)] - length;
    if (!wraps) first = indices_within(first, {.count = room + 1, .what = "input write_indices"});
    places = places + reshape(cast(first, ElementType::i64), Shape(batch));
  }
  if (wraps)
    places = mod(places, constant_like(places, static_cast<double>(cache.shape()[static_cast<int>(axis)])));
  return {scatter_elements(cache, expand(places, update.shape()), update, static_cast<std::int64_t>(axis))};
}

}  // namespace

Var tensor_scatter(Var cache, Var update, Var write_indices, std::int64_t axis, bool wraps) {
  return cache.builder().node1("TensorScatter", {cache, update, write_indices},
                               {{"axis", axis}, {"mode", std::string(wraps ? "circular" : "linear")}});
}

std::span<const Definition> tensor_scatter_operators() {
  static const Definition definitions[] = {composite<decompose_tensor_scatter>(
      {"TensorScatter", 24, 2, 3}, infer_tensor_scatter,
      {.elements = Elements::any, .work = WorkKind::elementwise, .attributes = "axis mode"})};
  return definitions;
}

}  // namespace superstep::op
