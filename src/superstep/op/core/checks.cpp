#include "superstep/op/core/checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace superstep::op {
namespace {

void require_kind(const InferContext& context, std::size_t input, std::string_view name, bool holds,
                  std::string_view expected) {
  if (!holds)
    refuse(fmt::format("input {} is {}, expected {}", name, to_string(context.input(input)), expected));
}

}  // namespace

void refuse(const std::string& message) { throw Error(ErrorCode::bad_graph, message); }

void require(bool holds, const std::string& message) {
  if (!holds) refuse(message);
}

void require_floating(const InferContext& context, std::size_t input, std::string_view name) {
  require_kind(context, input, name, is_floating(context.input(input).element), "a floating-point type");
}

void require_integer(const InferContext& context, std::size_t input, std::string_view name) {
  require_kind(context, input, name, is_integer(context.input(input).element), "an integer type");
}

void require_numeric(const InferContext& context, std::size_t input, std::string_view name) {
  require_kind(context, input, name, context.input(input).element != ElementType::boolean, "a numeric type");
}

void require_boolean(const InferContext& context, std::size_t input, std::string_view name) {
  require_kind(context, input, name, context.input(input).element == ElementType::boolean, "bool");
}

void require_scalar(const InferContext& context, std::size_t input, std::string_view name) {
  require_kind(context, input, name, context.input(input).shape.element_count() == 1, "one element");
}

void require_rank(const InferContext& context, std::size_t input, std::string_view name, int rank) {
  require_kind(context, input, name, context.input(input).shape.rank() == rank, fmt::format("rank {}", rank));
}

void require_min_rank(const InferContext& context, std::size_t input, std::string_view name, int rank) {
  require_kind(context, input, name, context.input(input).shape.rank() >= rank,
               fmt::format("rank {} or more", rank));
}

void require_shape(const InferContext& context, std::size_t input, std::string_view name,
                   const Shape& shape) {
  require_kind(context, input, name, context.input(input).shape == shape,
               fmt::format("shape {}", to_string(shape)));
}

void require_same_element(const InferContext& context, std::size_t input, std::string_view name,
                          std::size_t like, std::string_view like_name) {
  const ElementType expected = context.input(like).element;
  require_kind(context, input, name, context.input(input).element == expected,
               fmt::format("{} like {}", name_of(expected), like_name));
}

int checked_axis(std::int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank)
    refuse(fmt::format("{} {} lies outside [{}, {}]", what, axis, -rank, rank - 1));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> checked_axes(const std::vector<std::int64_t>& axes, int rank, std::string_view what) {
  std::vector<int> result;
  for (std::int64_t axis : axes) result.push_back(checked_axis(axis, rank, what));
  std::ranges::sort(result);
  if (std::ranges::adjacent_find(result) != result.end())
    refuse(fmt::format("{} name the same axis twice", what));
  return result;
}

Shape checked_broadcast(const Shape& a, const Shape& b, std::string_view what) {
  try {
    return broadcast_shapes(a, b);
  } catch (const Error&) {
    refuse(
        fmt::format("{} of shapes {} and {} cannot be broadcast together", what, to_string(a), to_string(b)));
  }
}

Shape broadcast_inputs(const InferContext& context) {
  Shape shape = context.input(0).shape;
  for (std::size_t i = 1; i < context.inputs.size(); ++i)
    shape = checked_broadcast(shape, context.input(i).shape, "inputs");
  return shape;
}

std::vector<std::int64_t> integers_of(const Tensor& tensor) {
  const Tensor wide = tensor.converted(ElementType::i64);
  const auto values = wide.as<std::int64_t>();
  return {values.begin(), values.end()};
}

std::int64_t integer_of(const Tensor& tensor) { return integers_of(tensor).at(0); }

}  // namespace superstep::op
