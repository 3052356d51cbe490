#include "superstep/transform/precision/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/product/convolution.h"
#include "superstep/transform/fuse_elementwise.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

bool follows(const Node& node) { return op::traits_of(node.op).precision != op::Precision::wide; }

// The channels a product sums and those it gives.
bool is_wide(const Graph& graph, const Node& node, const AutocastOptions& options) {
  const Shape &a = graph.type(node.inputs[0]).shape, &b = graph.type(node.inputs[1]).shape;
  const Shape& result = graph.type(node.outputs[0]).shape;
  if (options.kept.contains(graph.value(node.outputs[0]).name)) return false;
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  const bool convolution = op::is_convolution(kind), transposed = op::transposes_left(kind, node.attributes);
  const std::int64_t group = node.attributes.integer("group", 1);
  if (convolution && options.depthwise && group > 1 && group == a[1] && group == result[1])
    return group >= options.least_width;
  const std::int64_t summed = convolution ? a[1] / group : a[a.rank() - (transposed ? 2 : 1)];
  const std::int64_t given = convolution ? result[1] / group : b.rank() > 1 ? result[result.rank() - 1] : 1;
  return summed >= options.least_width && given >= options.least_width;
}

class Autocast {
 public:
  Autocast(const Graph& model, ElementType reduced, const AutocastOptions& options)
      : rewrite_(model),
        reduced_(reduced),
        options_(options),
        uses_(model.use_counts()),
        wanted_(model.value_count(), false),
        narrow_(model.value_count()),
        made_narrow_(model.value_count(), false) {
    for (const graph::Output& output : model.outputs()) outputs_.insert(output.value);
    find_wanted();
  }

  Graph run() {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    for (const graph::Output& output : rewrite_.old().outputs()) widen(output.value);
    for (const graph::Update& update : rewrite_.old().updates()) widen(update.next);
    return rewrite_.finish();
  }

 private:
  void visit(const Node& node) {
    const bool narrow = is_fusion_anchor(node.op) ? is_wide(node)
                                                  : (follows(node) && !gives_output(node) &&
                                                     (all_come_narrow(node) || gives_wanted(node)));
    if (narrow && has_wide_data(node) && !moves_parameters(node)) return run_narrow(node);
    for (ValueId id : node.inputs) widen(id);
    if (node.op == "LSTM" && reduced_ == ElementType::bf16) return multiply_narrow(node);
    rewrite_.keep(node);
  }

  // Its states and gates stay f32; targets may multiply in the reduced type.
  void multiply_narrow(const Node& node) {
    graph::Attributes attributes = node.attributes;
    attributes.set("products", std::string("bf16"));
    std::vector<Var> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id.valid() ? rewrite_.now(id) : Var());
    const std::vector<Var> outputs =
        rewrite_.builder().node(node.op, inputs, attributes, static_cast<int>(node.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i].valid()) rewrite_.replace(node.outputs[i], outputs[i]);
  }

  // Values that are read in the reduced type alone: the operators before them round once, at the end, and
  // store half the bytes.
  void find_wanted() {
    const Graph& graph = rewrite_.old();
    std::vector<bool> refused(graph.value_count(), false);
    for (const graph::Update& update : graph.updates()) refused[update.next.index()] = true;
    for (ValueId output : outputs_) refused[output.index()] = true;
    for (std::size_t i = graph.node_count(); i-- > 0;) {
      const Node& node = graph.nodes()[i];
      for (ValueId output : node.outputs)
        if (output.valid() && refused[output.index()]) wanted_[output.index()] = false;
      const bool reads_narrow = is_fusion_anchor(node.op) ? is_wide(node) : gives_wanted(node);
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (!node.inputs[k].valid()) continue;
        const std::size_t id = node.inputs[k].index();
        if (reads_narrow && is_data(node, k))
          wanted_[id] = true;
        else
          refused[id] = true;
      }
    }
  }

  // What nobody reads (the places of maxima) is nothing to go by.
  bool gives_wanted(const Node& node) const {
    const auto is_wanted = [&](ValueId id) {
      return id.valid() &&
             (wanted_[id.index()] || (options_.served && id != node.outputs[0] && uses_[id.index()] == 0));
    };
    return op::traits_of(node.op).precision == op::Precision::follows &&
           std::ranges::all_of(node.outputs, is_wanted);
  }

  bool is_wide(const Node& node) const { return transform::is_wide(rewrite_.old(), node, options_); }

  bool gives_output(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return outputs_.contains(id); });
  }
  bool is_f32(ValueId id) const { return id.valid() && rewrite_.old().type(id).element == ElementType::f32; }
  // Dropout's ratio is a number, not data.
  bool is_data(const Node& node, std::size_t input) const {
    return is_f32(node.inputs[input]) && !(node.op == "Dropout" && input > 0);
  }
  bool has_wide_data(const Node& node) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (is_data(node, i)) return true;
    return false;
  }

  bool is_computed(ValueId id) const {
    const auto kind = rewrite_.old().value(id).kind;
    return kind == graph::ValueKind::computed || kind == graph::ValueKind::input;
  }
  bool all_come_narrow(const Node& node) const {
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_data(node, i)) continue;
      const ValueId id = node.inputs[i];
      if (is_computed(id) && !was_narrow(id)) return false;
      any = any || was_narrow(id);
    }
    return any;
  }
  // Parameters are moved as they are and rounded behind that, so that whoever packs them finds them behind
  // one cast.
  bool moves_parameters(const Node& node) const {
    return (node.op == "Transpose" || node.op == "Reshape") && !is_computed(node.inputs[0]);
  }
  bool was_narrow(ValueId id) const { return made_narrow_[id.index()]; }

  void run_narrow(const Node& node) {
    std::vector<Var> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(is_data(node, i) ? narrow(node.inputs[i]) : other(node.inputs[i]));
    const std::vector<Var> outputs =
        rewrite_.builder().node(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i].valid()) take_output(node.outputs[i], outputs[i]);
  }

  Var other(ValueId id) {
    widen(id);
    return rewrite_.now(id);
  }

  void take_output(ValueId old, Var now) {
    if (!is_f32(old)) return rewrite_.replace(old, now);
    narrow_[old.index()] = now;
    made_narrow_[old.index()] = true;
  }

  Var narrow(ValueId id) {
    Var& var = narrow_[id.index()];
    if (!var.valid()) var = op::cast(rewrite_.now(id), reduced_);
    return var;
  }

  // Makes the f32 form of a value that was computed in the reduced type.
  void widen(ValueId id) {
    if (id.valid() && was_narrow(id) && !rewrite_.has(id))
      rewrite_.replace(id, op::cast(narrow_[id.index()], ElementType::f32));
  }

  Rewrite rewrite_;
  ElementType reduced_;
  AutocastOptions options_;
  std::vector<int> uses_;          // by old value: readers
  std::set<ValueId> outputs_;      // of the old graph
  std::vector<bool> wanted_;       // by old value: is it read in the reduced type alone?
  std::vector<Var> narrow_;        // by old value: its form in the reduced type
  std::vector<bool> made_narrow_;  // by old value: was it computed in it?
};

}  // namespace

std::vector<NodeId> products_to_narrow(const Graph& model, const AutocastOptions& options) {
  std::vector<NodeId> products;
  for (std::size_t i = 0; i < model.node_count(); ++i) {
    const Node& node = model.nodes()[i];
    const bool f32 = is_fusion_anchor(node.op) && model.type(node.inputs[0]).element == ElementType::f32;
    if (f32 && is_wide(model, node, options)) products.push_back(NodeId(i));
  }
  return products;
}

Graph autocast(const Graph& model, ElementType reduced, const AutocastOptions& options) {
  if (reduced != ElementType::bf16 && reduced != ElementType::f16)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("reduced precision is bf16 or f16, not {}", superstep::name_of(reduced)));
  return Autocast(model, reduced, options).run();
}

}  // namespace superstep::transform
