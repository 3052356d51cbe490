#include "superstep/op/move/index_range.h"

#include <fmt/format.h>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/elementwise_traits.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_within(const InferContext& context) {
  require_integer(context, 0, "indices");
  return {context.input(0)};
}

void evaluate_within(const EvaluateContext& context) {
  const IndexRange range = index_range(context.attributes);
  const Tensor& indices = context.input(0);
  dispatch(indices.type(), [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      for (const T index : indices.as<T>()) {
        const bool inside =
            std::cmp_greater_equal(index, range.first) && std::cmp_less(index, range.first + range.count);
        if (!inside && !(range.besides && std::cmp_equal(index, *range.besides)))
          refuse_index(range, fmt::format("{}", index));
      }
  });
  indices.copy_to(context.output(0).bytes());
}

std::vector<Var> decompose_within(const DerivativeContext& context) {
  return {context.builder.node1("Identity", {context.inputs[0]})};
}

}  // namespace

Var indices_within(Var indices, const IndexRange& range) {
  Attributes attributes{{"first", range.first}, {"count", range.count}, {"what", range.what}};
  if (range.besides) attributes.set("besides", *range.besides);
  return indices.builder().node1("superstep.IndicesWithin", {indices}, attributes);
}

IndexRange index_range(const Attributes& attributes) {
  IndexRange range{.first = attributes.integer("first", 0),
                   .count = attributes.integer("count", 0),
                   .besides = {},
                   .what = attributes.text("what", "input indices")};
  if (attributes.has("besides")) range.besides = attributes.integer("besides");
  return range;
}

void refuse_index(const IndexRange& range, const std::string& index) {
  const std::string besides = range.besides ? fmt::format(" or {}", *range.besides) : "";
  throw Error(ErrorCode::invalid_argument, fmt::format("{} holds {}, expected {} to {}{}", range.what, index,
                                                       range.first, range.first + range.count - 1, besides));
}

std::span<const Definition> index_range_operators() {
  static const Definition definitions[] = {
      {.name = "superstep.IndicesWithin",
       .since_opset = 0,
       .traits = elementwise_traits(Elements::integer),
       .infer = infer_within,
       .evaluate = evaluate_within,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .decompose = decompose_within},
  };
  return definitions;
}

}  // namespace superstep::op
