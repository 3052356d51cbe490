#include "superstep/op/core/batch_axis.h"

#include <algorithm>

#include "superstep/op/core/definition.h"

namespace superstep::op {
namespace {

// Broadcasting aligns axes from the back: how far an input's axes move.
int shift_of(const BatchSite& site, std::size_t input) {
  return site.output_shape().rank() - site.shape(input).rank();
}

// The axes of an input along which its elements may differ: not those of a single place.
std::uint64_t variation(const BatchSite& site, std::size_t input) {
  const Shape& shape = site.shape(input);
  std::uint64_t axes = 0;
  for (int axis = 0; axis < shape.rank() && axis < 64; ++axis)
    if (shape[axis] > 1) axes |= std::uint64_t{1} << axis;
  return site.inputs[input].varies & axes;
}

std::uint64_t broadcast_variation(const BatchSite& site) {
  std::uint64_t varies = 0;
  for (std::size_t i = 0; i < site.inputs.size(); ++i)
    if (site.has(i)) varies |= variation(site, i) << shift_of(site, i);
  return varies;
}

bool all_uniform(const BatchSite& site) {
  for (std::size_t i = 0; i < site.inputs.size(); ++i)
    if (site.has(i) && variation(site, i) != 0) return false;
  return true;
}

}  // namespace

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

BatchAxis constant_batch_axis(const BatchSite& site) {
  switch (traits_of(site.node.op).constants) {
    case Variation::anywhere: return any_constant();
    case Variation::nowhere: return same_everywhere();
    case Variation::elementwise: return {.kind = BatchKind::constant, .varies = broadcast_variation(site)};
    case Variation::as_expanded:
      return {.kind = BatchKind::constant, .varies = variation(site, 0) << shift_of(site, 0)};
    case Variation::as_moved: return variation(site, 0) == 0 ? same_everywhere() : any_constant();
    case Variation::as_reduced: return all_uniform(site) ? same_everywhere() : any_constant();
  }
  return any_constant();
}

}  // namespace superstep::op
