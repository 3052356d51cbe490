#include "superstep/onnx/emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/onnx/bounded/rules.h"
#include "superstep/op/core/evaluate.h"

namespace superstep::onnx {
namespace {

// What is computed at import without being asked for: small results, of inputs that are not large. Integers
// may be larger: they are shapes and indices, not weights.
constexpr double eager_bytes = 16384, eager_integer_bytes = 1 << 20, eager_input_bytes = 4 << 20;
constexpr double eager_flops = 1e7;
// What is computed because a shape needs it: the reference evaluation takes seconds for this much.
constexpr double needed_flops = 1e9, needed_bytes = 1 << 28;

double bytes_of(const graph::ValueType& type) {
  return static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
}

std::int64_t integer_at(const Tensor& tensor, std::size_t index) { return tensor.as<std::int64_t>()[index]; }

bool all_integer(std::span<const graph::ValueType> types) {
  return std::ranges::none_of(types, [](const auto& type) { return is_floating(type.element); });
}

template <class Types>
double total_bytes(const Types& types) {
  double total = 0;
  for (const graph::ValueType& type : types) total += bytes_of(type);
  return total;
}

// Weights that are stored as integers stay integers, whatever their size.
bool keeps_quantization(std::string_view op) {
  return op == "DequantizeLinear" || op == "QuantizeLinear" || op == "DynamicQuantizeLinear";
}

bool worthwhile(const op::Definition& definition, const Attributes& attributes,
                std::span<const graph::ValueType> in, std::span<const graph::ValueType> out, bool needed) {
  const double out_bytes = total_bytes(out), in_bytes = total_bytes(in);
  double flops = out_bytes;
  if (definition.flops) flops = definition.flops(attributes, in, out);
  if (needed) return flops <= needed_flops && out_bytes <= needed_bytes && in_bytes <= needed_bytes;
  if (keeps_quantization(definition.name)) return false;
  return flops <= eager_flops && in_bytes <= eager_input_bytes &&
         out_bytes <= (all_integer(out) ? eager_integer_bytes : eager_bytes);
}

}  // namespace

void Emitter::count_node() {
  if (static_cast<std::int64_t>(graph().node_count()) >= most_nodes_)
    throw Error(ErrorCode::unsupported, fmt::format("the graph grows beyond {} nodes", most_nodes_), {},
                "loops are unrolled: fewer trips make a smaller graph");
}

Var Emitter::reshape(Var x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return emit1("Reshape", {x, integers(shape.extents())}, {{"allowzero", std::int64_t{1}}});
}

Var Emitter::add_sequence(std::vector<Var> members) {
  const Var handle = constant(Tensor(ElementType::boolean, {0}));
  sequences_[handle.id()] = std::move(members);
  return handle;
}

const std::vector<Var>* Emitter::sequence(Var handle) const {
  const auto found = sequences_.find(handle.id());
  return found == sequences_.end() ? nullptr : &found->second;
}

std::vector<Var> Emitter::emit(std::string_view op, std::vector<Var> inputs, Attributes attributes,
                               int outputs) {
  if (bounds_.any())
    if (auto bounded = emit_bounded(*this, op, inputs, attributes, outputs)) return *bounded;
  return plain(op, std::move(inputs), std::move(attributes), outputs);
}

std::vector<Var> Emitter::plain(std::string_view op, std::vector<Var> inputs, Attributes attributes,
                                int outputs) {
  while (!inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  if ((op == "Shape" || op == "Size") && inputs.size() == 1) return shape_constant(op, inputs[0], attributes);
  const op::Definition& definition = op::get(op);
  if (inputs.size() < static_cast<std::size_t>(definition.min_inputs))
    throw Error(ErrorCode::bad_graph, fmt::format("takes at least {} inputs", definition.min_inputs));
  substitute(definition, inputs);
  if (auto folded = fold(definition, inputs, attributes, outputs, false)) return *folded;
  return add(definition, std::move(inputs), attributes, outputs);
}

// Shape rules say what they miss by an error: then everything that can be known is made known, once.
std::vector<Var> Emitter::add(const op::Definition& definition, std::vector<Var> inputs,
                              const Attributes& attributes, int outputs) {
  count_node();
  try {
    return builder_.node(definition.name, inputs, attributes, outputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported || !make_all_known(inputs)) throw;
  }
  if (auto folded = fold(definition, inputs, attributes, outputs, true)) return *folded;
  return builder_.node(definition.name, inputs, attributes, outputs);
}

// The shape of a value with bounded axes: their extents are what is taken of them.
Var Emitter::runtime_shape(Var x) {
  const BoundedAxes axes = bounds_.of(x);
  std::vector<Var> extents;
  std::vector<std::int64_t> full = x.shape().extents(), empty = full;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const auto bounded = axes.find(axis);
    if (bounded == axes.end()) {
      extents.push_back(integers({x.shape()[axis]}));
      continue;
    }
    const Var count = taken(*this, bounded->second);
    empty[static_cast<std::size_t>(axis)] = integer_at(*when_empty(count), 0);
    extents.push_back(plain1("Reshape", {count, integers({1})}));
  }
  const Var shape = extents.size() == 1 ? extents[0] : plain1("Concat", extents, {{"axis", std::int64_t{0}}});
  const Shape vector{x.shape().rank()};
  set_bounded(shape.id(), Tensor::from(vector, full), Tensor::from(vector, empty));
  bounds_.set_extents(shape);
  return shape;
}

std::vector<Var> Emitter::shape_constant(std::string_view op, Var x, const Attributes& attributes) {
  const Shape shape = x.shape();
  if (!bounds_.of(x).empty()) {
    if (op == "Size") return {plain1("ReduceProd", {runtime_shape(x)}, {{"keepdims", std::int64_t{0}}})};
    const Var whole = runtime_shape(x);
    if (!attributes.has("start") && !attributes.has("end")) return {whole};
    return {plain1("Slice", {whole, integers({attributes.integer("start", 0)}),
                             integers({attributes.integer("end", shape.rank())})})};
  }
  if (op == "Size") return {constant(Tensor::scalar<std::int64_t>(shape.element_count()))};
  const auto clamp = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + shape.rank() : at, 0, shape.rank());
  };
  const std::int64_t start = clamp(attributes.integer("start", 0));
  const std::int64_t end = std::max(start, clamp(attributes.integer("end", shape.rank())));
  return {integers({shape.begin() + start, shape.begin() + end})};
}

Var Emitter::as_constant(Var value) {
  if (graph().value(value.id()).kind == graph::ValueKind::constant) return value;
  const Tensor* data = known(value);
  if (!data) return {};
  const auto [place, fresh] = constants_.try_emplace(value.id());
  if (fresh) place->second = builder_.constant(*data, graph().value(value.id()).name + ".known");
  return place->second;
}

void Emitter::substitute(const op::Definition& definition, std::vector<Var>& inputs) {
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 32); ++i)
    if (inputs[i].valid() && definition.shape_inputs >> i & 1u)
      if (const Var known_input = as_constant(inputs[i]); known_input.valid()) inputs[i] = known_input;
}

// Did any input become a constant that was none?
bool Emitter::make_all_known(std::vector<Var>& inputs) {
  bool changed = false;
  for (Var& input : inputs) {
    if (!input.valid() || graph().value(input.id()).kind == graph::ValueKind::constant) continue;
    if (const Var known_input = as_constant(input); known_input.valid()) input = known_input, changed = true;
  }
  return changed;
}

bool Emitter::foldable(const op::Definition& definition, std::span<const Var> inputs) const {
  if (definition.has_effects || !definition.evaluate) return false;
  return std::ranges::all_of(inputs, [&](const Var& input) {
    return !input.valid() || (input.builder().graph().value(input.id()).kind == graph::ValueKind::constant &&
                              !parameters_.contains(input.id()));
  });
}

std::optional<std::vector<Var>> Emitter::fold(const op::Definition& definition, std::span<const Var> inputs,
                                              const Attributes& attributes, int outputs, bool needed) {
  if (!foldable(definition, inputs)) return {};
  graph::Node candidate{.op = std::string(definition.name), .inputs = {}, .attributes = attributes};
  candidate.outputs.resize(static_cast<std::size_t>(outputs));
  std::vector<graph::ValueType> in;
  std::vector<const Tensor*> data;
  for (const Var& input : inputs) {
    candidate.inputs.push_back(input.id());
    in.push_back(input.valid() ? input.type() : graph::ValueType{ElementType::f32, Shape{0}});
    data.push_back(input.valid() ? &graph().value(input.id()).data : nullptr);
  }
  auto types = op::infer_types(graph(), candidate);
  if (!types || !worthwhile(definition, attributes, in, *types, needed)) return {};
  types->resize(std::min(types->size(), candidate.outputs.size()));
  std::vector<Tensor> results;
  for (const graph::ValueType& type : *types) results.emplace_back(type.element, type.shape);
  op::EvaluateContext context{attributes, std::move(data), {}};
  for (Tensor& result : results) context.outputs.push_back(&result);
  definition.evaluate(context);
  std::vector<Var> constants;
  for (Tensor& result : results) constants.push_back(constant(std::move(result)));
  return constants;
}

const Tensor* Emitter::leaf(ValueId id) {
  if (const auto found = known_.find(id); found != known_.end()) return &found->second;
  if (const auto loader = loaders_.find(id); loader != loaders_.end())
    return &known_.emplace(id, loader->second()).first->second;
  const graph::Value& value = graph().value(id);
  const bool has_data = value.kind == graph::ValueKind::constant || value.kind == graph::ValueKind::state;
  return has_data ? &value.data : nullptr;
}

// The nodes between a value and what is known already. A stack of our own: chains may be long.
void Emitter::collect(ValueId start, std::set<graph::NodeId>& nodes) const {
  std::vector<ValueId> open{start};
  while (!open.empty()) {
    const graph::Value& value = builder_.graph().value(open.back());
    open.pop_back();
    if (value.kind != graph::ValueKind::computed || !nodes.insert(value.producer).second) continue;
    for (ValueId input : builder_.graph().node(value.producer).inputs)
      if (input.valid() && !known_.contains(input) && !unknown_.contains(input)) open.push_back(input);
  }
}

// Computes the outputs of a node whose inputs are known; false when they are not.
bool Emitter::evaluate(graph::NodeId id) {
  const graph::Node& node = graph().node(id);
  const op::Definition& definition = op::get(node.op);
  std::vector<const Tensor*> inputs;
  std::vector<graph::ValueType> in, out;
  for (ValueId input : node.inputs) {
    inputs.push_back(input.valid() && !unknown_.contains(input) ? leaf(input) : nullptr);
    if (input.valid() && !inputs.back()) return false;
    in.push_back(input.valid() ? graph().type(input) : graph::ValueType{ElementType::f32, Shape{0}});
  }
  for (ValueId output : node.outputs)
    out.push_back(output.valid() ? graph().type(output) : graph::ValueType{ElementType::f32, Shape{0}});
  if (definition.has_effects || !worthwhile(definition, node.attributes, in, out, true)) return false;
  if (!evaluate_empty(node, inputs)) return false;
  std::vector<Tensor> results = op::evaluate_node(graph(), node, inputs);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (node.outputs[i].valid()) known_.insert_or_assign(node.outputs[i], std::move(results[i]));
  return true;
}

// The same where no bounded place is taken; nothing where no input follows that. What would be of
// another shape then is not known at all.
bool Emitter::evaluate_empty(const graph::Node& node, std::vector<const Tensor*> inputs) {
  bool follows = false;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const auto empty = empty_.find(node.inputs[i]); inputs[i] && empty != empty_.end())
      inputs[i] = &empty->second, follows = true;
  if (!follows) return true;
  if (op::get(node.op).shape_inputs != 0)
    for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 32); ++i)
      if (op::get(node.op).shape_inputs >> i & 1u && node.inputs[i].valid() &&
          empty_.contains(node.inputs[i]))
        return false;
  std::vector<Tensor> results = op::evaluate_node(graph(), node, inputs);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (node.outputs[i].valid()) empty_.insert_or_assign(node.outputs[i], std::move(results[i]));
  return true;
}

const Tensor* Emitter::when_empty(Var value) {
  const Tensor* full = when_full(value);
  if (!full) return nullptr;
  const auto empty = empty_.find(value.id());
  return empty == empty_.end() ? full : &empty->second;
}

const Tensor* Emitter::known(Var value) {
  const Tensor* data = when_full(value);
  return data && !empty_.contains(value.id()) ? data : nullptr;
}

const Tensor* Emitter::when_full(Var value) {
  if (!value.valid() || unknown_.contains(value.id())) return nullptr;
  if (const Tensor* data = leaf(value.id())) return data;
  std::set<graph::NodeId> nodes;  // in the order in which they can run
  collect(value.id(), nodes);
  for (graph::NodeId node : nodes)
    if (!evaluate(node))
      for (ValueId output : graph().node(node).outputs)
        if (output.valid()) unknown_.insert(output);
  const auto found = known_.find(value.id());
  if (found == known_.end()) unknown_.insert(value.id());
  return found == known_.end() ? nullptr : &found->second;
}

}  // namespace superstep::onnx
