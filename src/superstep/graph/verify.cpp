#include "superstep/graph/verify.h"

#include <fmt/format.h>

#include <set>

namespace superstep::graph {
namespace {

std::string describe(const Graph& graph, std::size_t index) {
  const Node& node = graph.nodes()[index];
  std::string text = fmt::format("node {} ({}", index, node.op);
  if (!node.name.empty()) text += " '" + node.name + "'";
  return text + ")";
}

class Verifier {
 public:
  Verifier(const Graph& graph, InferTypes infer) : graph_(graph), infer_(infer) {}

  Status run() {
    for (std::size_t i = 0; i < graph_.value_count(); ++i)
      known_.push_back(graph_.values()[i].kind != ValueKind::computed);
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      if (Status status = check_node(i); !status) return status;
    if (Status status = check_outputs(); !status) return status;
    return check_updates();
  }

 private:
  bool available(ValueId id) const { return id.valid() && id.index() < known_.size() && known_[id.index()]; }

  // Words are made for what fails alone: a graph is verified after every pass that changes it.
  Status check_node(std::size_t index) {
    const Node& node = graph_.nodes()[index];
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i].valid() && !available(node.inputs[i]))
        return failure(ErrorCode::bad_graph,
                       fmt::format("input {} is computed by a later node or by none", i),
                       describe(graph_, index));
    auto types = infer_(graph_, node);
    if (!types) return std::unexpected(types.error().in(describe(graph_, index)));
    if (node.outputs.size() > types->size())
      return failure(ErrorCode::bad_graph,
                     fmt::format("has {} outputs, its operator gives {}", node.outputs.size(), types->size()),
                     describe(graph_, index));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (Status status = check_output(node, i, (*types)[i], index); !status) return status;
    return {};
  }

  Status check_output(const Node& node, std::size_t i, const ValueType& expected, std::size_t index) {
    const ValueId id = node.outputs[i];
    if (!id.valid()) return {};
    if (id.index() >= graph_.value_count())
      return failure(ErrorCode::bad_graph, "an output has no value", describe(graph_, index));
    const Value& value = graph_.value(id);
    if (value.kind != ValueKind::computed || value.producer.index() != index ||
        value.output_index != static_cast<int>(i))
      return failure(ErrorCode::bad_graph, fmt::format("output %{} belongs to something else", value.name),
                     describe(graph_, index));
    if (value.type != expected)
      return failure(ErrorCode::bad_graph,
                     fmt::format("output %{} is declared {}, its operator gives {}", value.name,
                                 to_string(value.type), to_string(expected)),
                     describe(graph_, index));
    known_[id.index()] = true;
    return {};
  }

  Status check_outputs() {
    std::set<std::string_view> names;
    for (const Output& output : graph_.outputs()) {
      if (!available(output.value))
        return failure(ErrorCode::bad_graph, "is never computed", "output " + output.name);
      if (!names.insert(output.name).second)
        return failure(ErrorCode::bad_graph, "two outputs have this name", "output " + output.name);
    }
    return {};
  }

  Status check_updates() {
    for (const Update& update : graph_.updates()) {
      if (!update.state.valid() || graph_.value(update.state).kind != ValueKind::state)
        return failure(ErrorCode::bad_graph, "an update writes something that is not state");
      const Value& state = graph_.value(update.state);
      const std::string where = "update of %" + state.name;
      if (!available(update.next))
        return failure(ErrorCode::bad_graph, "the new value is never computed", where);
      if (graph_.type(update.next) != state.type)
        return failure(ErrorCode::bad_graph,
                       fmt::format("the state is {}, the new value {}", to_string(state.type),
                                   to_string(graph_.type(update.next))),
                       where);
    }
    return {};
  }

  const Graph& graph_;
  InferTypes infer_;
  std::vector<bool> known_;
};

}  // namespace

Status verify(const Graph& graph, InferTypes infer) { return Verifier(graph, infer).run(); }

}  // namespace superstep::graph
