#include "superstep/onnx/bounded/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/batch_axis.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

BoundedRule find_rule(std::string_view op) {
  for (std::span<const NamedRule> rules :
       {bounded_view_rules(), bounded_choice_rules(), bounded_reduction_rules()})
    for (const NamedRule& rule : rules)
      if (rule.op == op) return rule.rule;
  return nullptr;
}

// Does the shape of the node's result follow how many places of some axis are taken?
bool shape_follows(Emitter& emitter, const op::Definition& definition, const std::vector<Var>& inputs) {
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 32); ++i)
    if (inputs[i].valid() && definition.shape_inputs >> i & 1u && emitter.follows_bounds(inputs[i]))
      return true;
  return false;
}

// Operators that give elements of lists as they are, in another order or with others.
bool moves_elements(std::string_view op) {
  constexpr std::string_view names[] = {"Gather",  "Slice", "Squeeze",  "Unsqueeze",
                                        "Reshape", "Cast",  "Identity", "Concat"};
  return std::ranges::find(names, op) != std::end(names);
}

// Extents that are moved: those that follow no count are what they are.
std::optional<std::vector<Var>> emit_extents(Emitter& emitter, std::string_view op,
                                             const std::vector<Var>& inputs, const Attributes& attributes,
                                             int outputs) {
  if (outputs != 1 || !moves_elements(op)) return {};
  bool some = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    if (emitter.bounds().are_extents(inputs[i])) {
      if (i > 0 && op != "Concat") return {};
      some = true;
    } else if (!emitter.known(inputs[i])) {
      return {};
    }
  }
  if (!some) return {};
  const Var moved = emitter.plain1(op, inputs, attributes);
  const Tensor *full = emitter.when_full(moved), *none = emitter.when_empty(moved);
  if (!full || !none) return std::vector{moved};
  if (op::integers_of(*full) == op::integers_of(*none)) return std::vector{emitter.constant(*full)};
  emitter.bounds().set_extents(moved);
  return std::vector{moved};
}

// Where one bounded axis of one input goes in an output.
op::BatchAxis place_in(const BoundedSite& site, const graph::Node& node, InputAxis from, std::int64_t rows,
                       std::size_t output) {
  op::BatchSite batch{.graph = site.emitter.graph(),
                      .node = node,
                      .inputs = std::vector<op::BatchAxis>(node.inputs.size(), op::same_everywhere()),
                      .output = output};
  batch.inputs[from.first] = op::along(from.second, rows);
  const auto rule = op::traits_of(site.op).batch;
  return rule ? rule(batch) : op::mixes("is not known to keep places along an axis apart");
}

}  // namespace

int BoundedSite::axis(std::int64_t otherwise) const {
  return op::checked_axis(attributes.integer("axis", otherwise), shape(0).rank());
}

std::vector<std::int64_t> BoundedSite::when_full(std::size_t i) const {
  const Tensor* data = has(i) ? emitter.when_full(inputs[i]) : nullptr;
  if (!data) refuse_bounded(*this, fmt::format("input {} must be known at import", i));
  return op::integers_of(*data);
}

std::vector<std::int64_t> BoundedSite::list(std::string_view attribute, std::size_t i) const {
  if (attributes.has(attribute)) return attributes.integers(attribute);
  return has(i) ? when_full(i) : std::vector<std::int64_t>();
}

void refuse_bounded(const BoundedSite& site, const std::string& why) {
  throw Error(ErrorCode::unsupported,
              fmt::format("reads a result whose length depends on the data, and {}", why), {},
              fmt::format("cut the model before the {}, or choose by a mask (Where) instead", site.op));
}

void mark(Emitter& emitter, Var value, int axis, const BoundedAxis& bounded) {
  const BoundedAxes& have = emitter.bounds().of(value);
  const auto found = have.find(axis);
  if (found == have.end()) return emitter.bounds().set(value, axis, bounded);
  const BoundedAxis other = found->second;
  if (other.count.id() == bounded.count.id() && other.rows == bounded.rows) return;
  const Var shorter = emitter.plain1("Min", {taken(emitter, other), taken(emitter, bounded)});
  emitter.bounds().set(value, axis, {.count = shorter});
}

std::vector<Var> keep_apart(BoundedSite& site, const std::set<InputAxis>& done) {
  if (shape_follows(site.emitter, op::get(site.op), site.inputs))
    refuse_bounded(site, "its own shape follows that length");
  std::vector<Var> outputs = site.plain();
  const graph::Graph& graph = site.emitter.graph();
  if (graph.value(outputs.at(0).id()).kind != graph::ValueKind::computed) {
    // Of constants alone. What is marked must be a value of its own.
    for (Var& output : outputs) output = site.emitter.builder().node1("Identity", {output});
    return outputs;
  }
  const graph::Node node = graph.node(graph.value(outputs.at(0).id()).producer);
  for (std::size_t i = 0; i < site.inputs.size(); ++i) {
    const BoundedAxes axes = site.axes(i);
    for (const auto& [axis, bounded] : axes) {
      if (done.contains({i, axis})) continue;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const op::BatchAxis to = place_in(site, node, {i, axis}, bounded.rows, o);
        if (to.kind == op::BatchKind::constant) continue;
        if (to.kind != op::BatchKind::per_sample)
          refuse_bounded(site, to.kind == op::BatchKind::mixed ? to.why : "it sums over that length");
        const std::int64_t extent = site.shape(i)[axis] / bounded.rows * to.rows;
        if (outputs[o].shape()[to.axis] != extent) refuse_bounded(site, "repeats its only place");
        mark(site.emitter, outputs[o], to.axis, {.count = bounded.count, .rows = to.rows});
      }
    }
  }
  return outputs;
}

namespace {

// x with as many places along an axis, zeros behind it.
Var grown(Emitter& emitter, Var x, int axis, std::int64_t extent) {
  if (x.shape()[axis] == extent) return x;
  std::vector<std::int64_t> more = x.shape().extents();
  more[static_cast<std::size_t>(axis)] = extent - x.shape()[axis];
  const Var zeros = emitter.constant(Tensor(x.element(), Shape(more)));
  return emitter.plain1("Concat", {x, zeros}, {{"axis", std::int64_t{axis}}});
}

// How many places of an axis are taken, bounded or not.
Var length_of(Emitter& emitter, Var x, int axis) {
  const BoundedAxes& axes = emitter.bounds().of(x);
  const auto bounded = axes.find(axis);
  return bounded == axes.end() ? emitter.constant(Tensor::scalar(x.shape()[axis]))
                               : taken(emitter, bounded->second);
}

}  // namespace

Var select_bounded(Emitter& emitter, Var condition, Var a, Var b) {
  if (a.element() != b.element() || a.shape().rank() != b.shape().rank())
    throw Error(ErrorCode::unsupported,
                fmt::format("a result is {} one way and {} the other, and the condition depends on the data",
                            graph::to_string(a.type()), graph::to_string(b.type())));
  BoundedAxes lengths;
  for (int axis = 0; axis < a.shape().rank(); ++axis) {
    const bool differs = a.shape()[axis] != b.shape()[axis];
    if (!differs && !emitter.bounds().of(a).contains(axis) && !emitter.bounds().of(b).contains(axis))
      continue;
    const Var of_a = length_of(emitter, a, axis), of_b = length_of(emitter, b, axis);
    const Var length = emitter.plain1("Where", {condition, of_a, of_b});
    const std::int64_t most = std::max(a.shape()[axis], b.shape()[axis]);
    emitter.set_bounded(length.id(), Tensor::scalar(most), Tensor::scalar<std::int64_t>(0));
    lengths[axis] = {.count = length};
  }
  for (const auto& [axis, length] : lengths) {
    const std::int64_t most = std::max(a.shape()[axis], b.shape()[axis]);
    a = grown(emitter, a, axis, most);
    b = grown(emitter, b, axis, most);
  }
  const Var result = emitter.plain1("Where", {condition, a, b});
  for (const auto& [axis, length] : lengths) emitter.bounds().set(result, axis, length);
  return result;
}

std::optional<std::vector<Var>> emit_bounded(Emitter& emitter, std::string_view op,
                                             const std::vector<Var>& inputs, const Attributes& attributes,
                                             int outputs) {
  if (op == "Shape" || op == "Size") return {};
  if (auto extents = emit_extents(emitter, op, inputs, attributes, outputs)) return extents;
  const bool reads =
      std::ranges::any_of(inputs, [&](const Var& input) { return !emitter.bounds().of(input).empty(); });
  if (!reads && !shape_follows(emitter, op::get(op), inputs)) return {};
  BoundedSite site{emitter, op, inputs, attributes, outputs};
  while (!site.inputs.empty() && !site.inputs.back().valid()) site.inputs.pop_back();
  const BoundedRule rule = find_rule(op);
  return rule ? rule(site) : keep_apart(site);
}

}  // namespace superstep::onnx
