// Use before definition: the elements that are surely written are followed through the tree of programs.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/bsp/compile/check.h"
#include "superstep/bsp/graph/rule_error.h"

namespace superstep::bsp {
namespace {

// Everything that a program may write, in whatever order.
void collect_writes(const GraphData& graph, const Program& program, AccessTable& accesses, ElementSets& out) {
  const ProgramNode& node = program.node();
  for (const Program& child : node.children) collect_writes(graph, child, accesses, out);
  if (node.kind == ProgramKind::call)
    collect_writes(graph, graph.functions[node.function.index()], accesses, out);
  else
    add(out, accesses.leaf(node).writes);
}

void keep_common(ElementSets& sets, const ElementSets& other) {
  for (auto& [variable, set] : sets) {
    const auto found = other.find(variable);
    set = found == other.end() ? IntervalSet() : set.intersection(found->second);
  }
}

class DefinitionChecker {
 public:
  DefinitionChecker(const GraphData& graph, AccessTable& accesses, ElementSets defined)
      : graph_(graph), accesses_(accesses), defined_(std::move(defined)) {}

  void run(const Program& program) {
    const ProgramNode& node = program.node();
    switch (node.kind) {
      case ProgramKind::sequence:
        for (const Program& child : node.children) run(child);
        break;
      case ProgramKind::call: run(graph_.functions[node.function.index()]); break;
      case ProgramKind::repeat:
        if (node.count > 0) run(node.children[0]);
        break;
      case ProgramKind::repeat_while: loop(node); break;
      case ProgramKind::branch:
      case ProgramKind::switch_case: alternatives(node); break;
      default: leaf(node);
    }
  }

 private:
  void loop(const ProgramNode& node) {
    run(node.children[0]);
    leaf(node);
    const ElementSets without = defined_;  // the body may not run at all
    run(node.children[1]);
    run(node.children[0]);
    defined_ = without;
  }

  void alternatives(const ProgramNode& node) {
    leaf(node);
    const ElementSets before = defined_;
    ElementSets common;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      defined_ = before;
      run(node.children[i]);
      if (i == 0)
        common = defined_;
      else
        keep_common(common, defined_);
    }
    defined_ = std::move(common);
  }

  void leaf(const ProgramNode& node) {
    const LeafAccess access = accesses_.leaf(node);
    for (const auto& [variable, set] : access.reads) {
      const auto found = defined_.find(variable);
      const IntervalSet missing = found == defined_.end() ? set : set.difference(found->second);
      if (!missing.empty()) report(node, variable, missing.intervals()[0].begin);
    }
    add(defined_, access.writes);
    for (const auto& [variable, set] : access.undefined) defined_[variable].remove(set);
  }

  [[noreturn]] void report(const ProgramNode& node, VariableId id, std::int64_t element) const {
    std::string who;
    if (node.kind == ProgramKind::execute) {
      const ComputeSetData& set = graph_.compute_sets[node.compute_set.index()];
      for (const Access& access : accesses_of(graph_, set).reads)
        if (access.variable == id && access.begin <= element && element < access.end) {
          const VertexId vertex = set.vertices[access.vertex];
          who = fmt::format("{}, field '{}'", graph_.describe(vertex),
                            graph_.vertices[vertex.index()].vertex_class->fields[access.field].name);
          break;
        }
    }
    throw RuleError(Rule::written_first, ErrorCode::bad_graph,
                    fmt::format("reads element {} of '{}' {}, which nothing has written before", element,
                                graph_.variable(id).name, to_string(graph_.variable(id).shape)),
                    who.empty() ? describe(node) : describe(node) + ": " + who,
                    "write it first, give it an initial value, or let the host write it");
  }

  const GraphData& graph_;
  AccessTable& accesses_;
  ElementSets defined_;
};

}  // namespace

void check_definitions(const GraphData& graph, std::span<const Program> programs, AccessTable& accesses) {
  ElementSets given;
  for (std::size_t i = 0; i < graph.variables.size(); ++i)
    if (graph.variables[i].initial) given[VariableId(i)] = graph.variables[i].initial->defined;
  for (const auto& [handle, write] : graph.writes) add(given, element_sets(write.tensor));
  std::vector<ElementSets> written(programs.size());
  for (std::size_t i = 0; i < programs.size(); ++i) collect_writes(graph, programs[i], accesses, written[i]);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    ElementSets defined = given;  // and what any other program writes: it may have run before
    for (std::size_t other = 0; other < programs.size(); ++other)
      if (other != i) add(defined, written[other]);
    DefinitionChecker(graph, accesses, std::move(defined)).run(programs[i]);
  }
}

}  // namespace superstep::bsp
