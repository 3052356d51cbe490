#include "superstep/onnx/open_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

[[noreturn]] void refuse(const std::string& where, const char* why) {
  throw Error(ErrorCode::unsupported, why, where, "write it for a fixed batch: --batch N");
}

[[noreturn]] void refuse_constant(const Value& value) {
  refuse("constant %" + value.name, "depends on the batch, so the file cannot leave the batch open");
}

// Constants are compared by their places: the nodes must be the same ones.
void require_same_nodes(const Graph& one, const Graph& other) {
  const auto same = [](const Node& a, const Node& b) {
    return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
  };
  const auto [a, b] = std::ranges::mismatch(one.nodes(), other.nodes(), same);
  if (a == one.nodes().end() && b == other.nodes().end() && one.value_count() == other.value_count()) return;
  const bool named = a != one.nodes().end();
  refuse(named ? fmt::format("node '{}' ({})", a->name, a->op) : one.name(),
         "is another one at another batch, so the file cannot leave the batch open");
}

bool only_reshapes_read(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes())
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == id && (node.op != "Reshape" || i != 1)) return false;
  return true;
}

OfBatch line(std::span<const std::int64_t> at_one, std::span<const std::int64_t> at_two, std::int64_t batch) {
  OfBatch result;
  for (std::size_t i = 0; i < at_one.size(); ++i) {
    result.factors.push_back(at_two[i] - at_one[i]);
    result.offsets.push_back(at_one[i] - result.factors.back() * batch);
  }
  return result;
}

std::vector<std::int64_t> integers(const Tensor& data) {
  std::vector<std::int64_t> result;
  const Tensor wide = data.converted(ElementType::i64);
  result.assign(wide.as<std::int64_t>().begin(), wide.as<std::int64_t>().end());
  return result;
}

// The elements at place 0 of an axis, where those at all other places are the same.
std::optional<Tensor> repeated_part(const Tensor& data, int axis) {
  const auto& extents = data.shape().extents();
  const std::size_t count = static_cast<std::size_t>(extents[static_cast<std::size_t>(axis)]);
  std::size_t inner = size_in_bytes(data.type()), outer = 1;
  for (int i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(extents[static_cast<std::size_t>(i)]);
  for (int i = axis + 1; i < data.shape().rank(); ++i) inner *= static_cast<std::size_t>(data.shape()[i]);
  std::vector<std::int64_t> part_extents = extents;
  part_extents[static_cast<std::size_t>(axis)] = 1;
  Tensor part(data.type(), Shape(part_extents));
  for (std::size_t o = 0; o < outer; ++o) {
    const std::byte* row = data.bytes() + o * count * inner;
    for (std::size_t k = 1; k < count; ++k)
      if (std::memcmp(row, row + k * inner, inner) != 0) return std::nullopt;
    std::memcpy(part.bytes() + o * inner, row, inner);
  }
  return part;
}

// Of the extents of a constant those that follow the batch.
std::optional<OpenConstant> repeated(const Tensor& a, const Tensor& b, std::int64_t batch) {
  if (a.type() != b.type() || a.shape().rank() != b.shape().rank() || a.element_count() == 0)
    return std::nullopt;
  Tensor part = a, of_two = b;
  for (int axis = 0; axis < a.shape().rank(); ++axis) {
    if (a.shape()[axis] == b.shape()[axis]) continue;
    const auto here = repeated_part(part, axis), there = repeated_part(of_two, axis);
    if (!here || !there) return std::nullopt;
    part = *here, of_two = *there;
  }
  if (!same_tensor(part, of_two)) return std::nullopt;
  return OpenConstant{.values = line(a.shape().extents(), b.shape().extents(), batch), .part = part};
}

std::optional<OpenConstant> opened(const Tensor& a, const Tensor& b, std::int64_t batch) {
  if (a.shape() != b.shape()) return repeated(a, b, batch);
  if (a.type() != b.type() || (a.type() != ElementType::i64 && a.type() != ElementType::i32))
    return std::nullopt;
  return OpenConstant{.values = line(integers(a), integers(b), batch), .part = std::nullopt};
}

bool foretells(const OpenConstant& rule, const Tensor& data, std::int64_t batch) {
  std::vector<std::int64_t> expected;
  for (std::size_t i = 0; i < rule.values.factors.size(); ++i) expected.push_back(rule.values.at(i, batch));
  if (!rule.part) return integers(data) == expected;
  if (data.shape().extents() != expected) return false;
  const auto again = repeated(*rule.part, data, 0);
  return again && same_tensor(*again->part, *rule.part);
}

// A target shape in which nothing else is -1 has one place for what follows the batch.
bool leaves_to_reshape(Graph& one, ValueId id, const OpenConstant& rule) {
  const Tensor& data = one.value(id).data;
  if (rule.part || data.type() != ElementType::i64 || !only_reshapes_read(one, id)) return false;
  const std::vector<std::int64_t> now = integers(data);
  const auto follows = [](std::int64_t factor) { return factor != 0; };
  if (std::ranges::count_if(rule.values.factors, follows) != 1 || std::ranges::find(now, -1) != now.end())
    return false;
  Tensor shape = data.clone();
  shape.set(std::ranges::find_if(rule.values.factors, follows) - rule.values.factors.begin(), -1);
  one.set_data(id, std::move(shape));
  return true;
}

}  // namespace

bool OfBatch::is_fixed() const {
  return std::ranges::all_of(factors, [](std::int64_t factor) { return factor == 0; });
}

std::optional<std::int64_t> factor_of_batch(std::int64_t at_one, std::int64_t at_two, std::int64_t batch) {
  const std::int64_t factor = at_two - at_one;
  return factor > 0 && at_one == factor * batch ? std::optional(factor) : std::nullopt;
}

std::map<ValueId, OpenConstant> open_batch(Graph& one, const Graph& two, std::int64_t batch,
                                           FunctionRef<Graph(std::int64_t)> at) {
  require_same_nodes(one, two);
  std::map<ValueId, OpenConstant> rules;
  for (std::size_t i = 0; i < one.value_count(); ++i) {
    const Value &a = one.values()[i], &b = two.values()[i];
    if (a.kind != ValueKind::constant || (b.kind == a.kind && same_tensor(a.data, b.data))) continue;
    const auto rule = b.kind == a.kind ? opened(a.data, b.data, batch) : std::nullopt;
    if (!rule) refuse_constant(a);
    if (!leaves_to_reshape(one, ValueId(i), *rule)) rules.emplace(ValueId(i), *rule);
  }
  if (rules.empty()) return rules;
  const std::int64_t far = 2 * batch + 1;
  const Graph other = at(far);
  require_same_nodes(one, other);
  for (const auto& [id, rule] : rules)
    if (!foretells(rule, other.value(id).data, far)) refuse_constant(one.value(id));
  return rules;
}

}  // namespace superstep::onnx
