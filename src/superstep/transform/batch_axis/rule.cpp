#include "superstep/transform/batch_axis/rule.h"

namespace superstep::transform {

std::optional<std::vector<std::int64_t>> BatchSite::integers(std::size_t input) const {
  if (!has(input)) return std::nullopt;
  const graph::Value& value = graph.value(node.inputs[input]);
  if (value.kind != graph::ValueKind::constant) return std::nullopt;
  const Tensor wide = value.data.converted(ElementType::i64);
  const auto elements = wide.as<std::int64_t>();
  return std::vector<std::int64_t>(elements.begin(), elements.end());
}

std::vector<std::int64_t> BatchSite::integers(std::string_view attribute, std::size_t input) const {
  if (node.attributes.has(attribute)) return node.attributes.integers(attribute);
  return integers(input).value_or(std::vector<std::int64_t>());
}

bool BatchSite::others_constant(std::initializer_list<std::size_t> these) const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (std::find(these.begin(), these.end(), i) == these.end() && !is(i, BatchKind::constant)) return false;
  return true;
}

BatchAxis along(int axis, std::int64_t rows) {
  return {.kind = BatchKind::per_sample, .axis = axis, .rows = rows};
}
BatchAxis same_everywhere() { return {.kind = BatchKind::constant}; }
BatchAxis any_constant() { return {.kind = BatchKind::constant, .varies = ~std::uint64_t{0}}; }
BatchAxis reduced_over_batch() { return {.kind = BatchKind::reduced}; }
BatchAxis mixes(const char* why) { return {.kind = BatchKind::mixed, .why = why}; }

}  // namespace superstep::transform
