// Element-wise operators broadcast by themselves: an input need not be spread out beforehand.
#include <algorithm>
#include <utility>

#include "superstep/op/core/definition.h"
#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

bool is_uniform(const Tensor& tensor) {
  const std::size_t size = size_in_bytes(tensor.type());
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count());
  for (std::size_t at = size; at < bytes.size(); at += size)
    if (bytes.substr(at, size) != bytes.substr(0, size)) return false;
  return true;
}

// The smaller value that a large one repeats: what Expand spread out, or one element of a constant.
Var before_spreading(const Site& site, Var input) {
  if (!input.valid() || input.shape().element_count() < 2) return {};
  if (const Node* expand = site.made_by(input, "Expand")) return site.input_of(*expand, 0);
  const Tensor* data = site.constant(input);
  if (!data || !is_uniform(*data)) return {};
  Tensor scalar(data->type(), {});
  std::copy_n(data->bytes(), size_in_bytes(data->type()), scalar.bytes());
  return site.builder.constant(scalar);
}

Shape broadcast_of(const std::vector<Var>& inputs) {
  Shape shape;
  for (const Var& input : inputs)
    if (input.valid()) shape = broadcast_shapes(shape, input.shape());
  return shape;
}

// Each input is read before it is spread out, unless it alone gives the result its shape.
Var spread_later(const Site& site) {
  std::vector<Var> inputs = site.inputs;
  bool changed = false;
  for (Var& input : inputs) {
    const Var smaller = before_spreading(site, input);
    if (!smaller.valid()) continue;
    const Var larger = std::exchange(input, smaller);
    if (broadcast_of(inputs) == site.type.shape)
      changed = true;
    else
      input = larger;
  }
  return changed ? site.builder.node(site.node.op, inputs, site.node.attributes)[0] : Var();
}

constexpr Rule rules[] = {
    {"Add", spread_later},
    {"Sub", spread_later},
    {"Mul", spread_later},
    {"Div", spread_later},
    {"Max", spread_later},
    {"Min", spread_later},
    {"Where", spread_later},
    {"Equal", spread_later},
    {"Greater", spread_later},
    {"Less", spread_later},
    {"GreaterOrEqual", spread_later},
    {"LessOrEqual", spread_later},
};

}  // namespace

std::span<const Rule> broadcast_rules() { return rules; }

}  // namespace superstep::transform
