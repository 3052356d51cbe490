// Graphs of what programs compute, as text for Graphviz.
#include <poplar/Graph.hpp>
#include <set>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/handles.h"

namespace poplar {
namespace {

namespace bsp = core::bsp;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "\"";
}

// Nodes and edges of the compute sets of programs, each once.
class Writer {
 public:
  Writer(std::ostream& out, const bsp::GraphData& graph, bool vertices)
      : out_(out), graph_(graph), vertices_(vertices) {
    out_ << "digraph {\n";
  }
  ~Writer() { out_ << "}\n"; }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void program(const bsp::Program& program) {
    const bsp::ProgramNode& node = program.node();
    if (!met_.insert(&node).second) return;
    if (node.kind == bsp::ProgramKind::execute) compute_set(node.compute_set);
    if (node.kind == bsp::ProgramKind::call) this->program(graph_.functions[node.function.index()]);
    for (const bsp::Program& child : node.children) this->program(child);
  }

 private:
  void compute_set(bsp::ComputeSetId id) {
    if (!sets_.insert(id.index()).second) return;
    const bsp::ComputeSetData& set = graph_.compute_sets[id.index()];
    const std::string name = fmt::format("set{}", id.index());
    if (!vertices_) out_ << "  " << name << " [shape=box, label=" << quoted(set.name) << "];\n";
    for (const bsp::VertexId vertex : set.vertices) {
      const std::string node = vertices_ ? fmt::format("vertex{}", vertex.index()) : name;
      const bsp::VertexData& data = graph_.vertices[vertex.index()];
      if (vertices_)
        out_ << "  " << node << " [shape=box, label=" << quoted(data.vertex_class->name) << "];\n";
      fields(data, node);
    }
  }

  void fields(const bsp::VertexData& vertex, const std::string& node) {
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
      const bsp::FieldDirection direction = vertex.vertex_class->fields[i].direction;
      for (const bsp::Tensor& tensor : vertex.fields[i].tensors) {
        if (!tensor.valid()) continue;
        for (const bsp::Region& region : tensor.view().regions()) {
          const std::string variable = this->variable(region.variable);
          if (direction != bsp::FieldDirection::output) edge(variable, node);
          if (direction != bsp::FieldDirection::input) edge(node, variable);
        }
      }
    }
  }

  std::string variable(bsp::VariableId id) {
    std::string name = fmt::format("variable{}", id.index());
    if (variables_.insert(id.index()).second)
      out_ << "  " << name << " [label=" << quoted(graph_.variable(id).name) << "];\n";
    return name;
  }

  void edge(const std::string& from, const std::string& to) {
    if (edges_.emplace(from, to).second) out_ << "  " << from << " -> " << to << ";\n";
  }

  std::ostream& out_;
  const bsp::GraphData& graph_;
  bool vertices_;
  std::set<const bsp::ProgramNode*> met_;
  std::set<std::size_t> sets_, variables_;
  std::set<std::pair<std::string, std::string>> edges_;
};

void write(std::ostream& out, const core::GraphHandle& handle, ArrayRef<program::Program> programs,
           bool vertices) {
  Writer writer(out, handle.state->graph.data(), vertices);
  for (const program::Program& program : programs) writer.program(program.data().get());
}

}  // namespace

void Graph::outputComputeGraph(std::ostream& out, ArrayRef<program::Program> programs) const {
  write(out, handle(), programs, false);
}
void Graph::outputVertexGraph(std::ostream& out, ArrayRef<program::Program> programs) const {
  write(out, handle(), programs, true);
}

}  // namespace poplar
