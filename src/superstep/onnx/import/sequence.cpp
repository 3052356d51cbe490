// Sequences and optionals inside a model, taken apart at import: where how many members there are is known, a
// sequence is only a way to pass values on, and an optional is a value that is there.
#include <fmt/format.h>

#include "superstep/onnx/adapters/adapters.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

const std::vector<Var>& members(const NodeImport& node, std::size_t input) {
  const std::vector<Var>* found = node.emitter.sequence(node.input(input));
  if (!found) refuse_node(fmt::format("input {} is not a sequence", input));
  return *found;
}

// A position in a sequence of `size`, counted from its end when negative; up to `last`.
std::ptrdiff_t position(NodeImport& node, std::size_t input, std::size_t size, std::size_t last) {
  const std::int64_t given = node.known_integer(input, "position");
  const std::int64_t at = given < 0 ? given + static_cast<std::int64_t>(size) : given;
  if (at < 0 || at > static_cast<std::int64_t>(last))
    throw Error(ErrorCode::bad_graph, fmt::format("position {} is outside the sequence", given));
  return static_cast<std::ptrdiff_t>(at);
}
std::ptrdiff_t member(NodeImport& node, std::size_t input, const std::vector<Var>& values) {
  if (values.empty()) throw Error(ErrorCode::bad_graph, "asks an empty sequence for a member");
  return position(node, input, values.size(), values.size() - 1);
}

std::vector<Var> sequence(NodeImport& node, std::vector<Var> values) {
  return {node.emitter.add_sequence(std::move(values))};
}

std::vector<Var> empty(NodeImport& node) { return sequence(node, {}); }
std::vector<Var> construct(NodeImport& node) { return sequence(node, node.inputs); }

std::vector<Var> insert(NodeImport& node) {
  std::vector<Var> values = members(node, 0);
  const std::ptrdiff_t at = node.has(2) ? position(node, 2, values.size(), values.size())
                                        : static_cast<std::ptrdiff_t>(values.size());
  values.insert(values.begin() + at, node.input(1));
  return sequence(node, std::move(values));
}

std::vector<Var> erase(NodeImport& node) {
  std::vector<Var> values = members(node, 0);
  if (values.empty()) throw Error(ErrorCode::bad_graph, "takes a member out of an empty sequence");
  values.erase(values.begin() +
               (node.has(1) ? member(node, 1, values) : static_cast<std::ptrdiff_t>(values.size()) - 1));
  return sequence(node, std::move(values));
}

std::vector<Var> at(NodeImport& node) {
  const std::vector<Var>& values = members(node, 0);
  return {values[static_cast<std::size_t>(member(node, 1, values))]};
}

std::vector<Var> length(NodeImport& node) {
  return {node.emitter.constant(Tensor::scalar(static_cast<std::int64_t>(members(node, 0).size())))};
}

std::vector<Var> concat(NodeImport& node) {
  std::vector<Var> values = members(node, 0);
  const std::int64_t axis = node.attributes.integer("axis");
  if (values.empty()) throw Error(ErrorCode::bad_graph, "puts an empty sequence together");
  if (node.attributes.integer("new_axis", 0) != 0)
    for (Var& value : values) value = node.emitter.emit1("Unsqueeze", {value, node.emitter.integers({axis})});
  return node.emitter.emit("Concat", std::move(values), {{"axis", axis}});
}

// The extents of the parts: given one by one, by one size for all, or 1 each.
std::vector<std::int64_t> part_extents(NodeImport& node, std::int64_t extent) {
  if (node.has(1) && node.input(1).shape().rank() > 0) return node.known_integers(1, "split");
  const std::int64_t size = node.has(1) ? node.known_integer(1, "split") : 1;
  if (size <= 0) throw Error(ErrorCode::bad_graph, "splits into parts without extent");
  std::vector<std::int64_t> parts(static_cast<std::size_t>(extent / size), size);
  if (extent % size != 0) parts.push_back(extent % size);
  return parts;
}

std::vector<Var> split(NodeImport& node) {
  const Var x = node.input(0);
  const std::int64_t axis = node.attributes.integer("axis", 0);
  const std::int64_t extent = x.shape()[op::checked_axis(axis, x.shape().rank())];
  constexpr std::int64_t most_parts = 100000;
  if (extent > most_parts) refuse_node("splits into more parts than an import may");
  const std::vector<std::int64_t> extents = part_extents(node, extent);
  if (extents.empty()) return sequence(node, {});
  std::vector<Var> parts = node.emitter.emit("Split", {x, node.emitter.integers(extents)}, {{"axis", axis}},
                                             static_cast<int>(extents.size()));
  if (!node.has(1) && node.attributes.integer("keepdims", 1) == 0)
    for (Var& part : parts) part = node.emitter.emit1("Squeeze", {part, node.emitter.integers({axis})});
  return sequence(node, std::move(parts));
}

std::vector<Var> optional(NodeImport& node) {
  if (!node.has(0)) refuse_node("makes an optional that is empty");
  return {node.input(0)};
}
std::vector<Var> get_element(NodeImport& node) { return {node.input(0)}; }
std::vector<Var> has_element(NodeImport& node) {
  return {node.emitter.constant(Tensor::scalar(node.has(0)))};
}

constexpr std::int64_t oldest = 1;

constexpr Adapter table[] = {
    {"SequenceEmpty", oldest, any_later, empty},
    {"SequenceConstruct", oldest, any_later, construct},
    {"SequenceInsert", oldest, any_later, insert},
    {"SequenceErase", oldest, any_later, erase},
    {"SequenceAt", oldest, any_later, at},
    {"SequenceLength", oldest, any_later, length},
    {"ConcatFromSequence", oldest, any_later, concat},
    {"SplitToSequence", oldest, any_later, split},
    {"Optional", oldest, any_later, optional},
    {"OptionalGetElement", oldest, any_later, get_element},
    {"OptionalHasElement", oldest, any_later, has_element},
};

}  // namespace

std::span<const Adapter> sequence_adapters() { return table; }

}  // namespace superstep::onnx
