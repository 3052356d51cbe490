// Pictures for Graphviz.
#include <fmt/format.h>

#include "superstep/graph/text.h"

namespace superstep::graph {
namespace {

// A label inside double quotes of the DOT language.
std::string label(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

const char* color_of(Phase phase) {
  static constexpr const char* colors[] = {"#dbe9f6", "#fde3cf", "#ddf0d8"};
  return colors[static_cast<int>(phase)];
}

class DotWriter {
 public:
  explicit DotWriter(const Graph& graph) : graph_(graph) {}

  std::string run() {
    text_ = fmt::format("digraph \"{}\" {{\n  node [fontname=\"sans-serif\", fontsize=10];\n",
                        label(graph_.name()));
    const std::vector<int> uses = graph_.use_counts();
    for (std::size_t i = 0; i < graph_.value_count(); ++i) write_source(ValueId(i), uses[i]);
    for (std::size_t i = 0; i < graph_.node_count(); ++i) write_node(i);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) write_output(i);
    for (const Update& update : graph_.updates())
      write_edge(update.next, fmt::format("v{}", update.state.index()), "style=dashed, constraint=false");
    return text_ + "}\n";
  }

 private:
  // Inputs, states and constants as boxes; small constants say nothing that a reader of the picture wants.
  void write_source(ValueId id, int uses) {
    const Value& value = graph_.value(id);
    if (value.kind == ValueKind::computed || (uses == 0 && value.kind == ValueKind::constant)) return;
    const char* style = value.kind == ValueKind::input   ? "shape=box"
                        : value.kind == ValueKind::state ? "shape=box, peripheries=2"
                                                         : "shape=box, style=dotted";
    text_ += fmt::format("  v{} [{}, label=\"{}\\n{}\"];\n", id.index(), style, label(value.name),
                         label(to_string(value.type)));
  }

  void write_node(std::size_t index) {
    const Node& node = graph_.nodes()[index];
    text_ += fmt::format("  n{} [style=filled, fillcolor=\"{}\", label=\"{}", index, color_of(node.phase),
                         label(node.op));
    text_ += node.name.empty() ? "\"];\n" : fmt::format("\\n{}\"];\n", label(node.name));
    for (ValueId input : node.inputs)
      if (input.valid()) write_edge(input, fmt::format("n{}", index), "");
  }

  void write_output(std::size_t index) {
    const Output& output = graph_.outputs()[index];
    text_ += fmt::format("  o{} [shape=box, style=rounded, label=\"{}\"];\n", index, label(output.name));
    write_edge(output.value, fmt::format("o{}", index), "");
  }

  void write_edge(ValueId from, const std::string& to, std::string_view style) {
    const Value& value = graph_.value(from);
    const bool computed = value.kind == ValueKind::computed;
    const std::string source =
        computed ? fmt::format("n{}", value.producer.index()) : fmt::format("v{}", from.index());
    text_ += fmt::format("  {} -> {} [label=\"{}\", fontsize=8{}{}];\n", source, to,
                         computed ? label(to_string(value.type)) : "", style.empty() ? "" : ", ", style);
  }

  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string to_dot(const Graph& graph) { return DotWriter(graph).run(); }

}  // namespace superstep::graph
