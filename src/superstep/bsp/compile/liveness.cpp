#include "superstep/bsp/compile/liveness.h"

#include <algorithm>

namespace superstep::bsp {
namespace {

// Goes through a program from its end to its beginning with the elements whose values are still needed.
class BackwardWalk {
 public:
  BackwardWalk(const GraphData& graph, AccessTable& accesses,
               const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of,
               std::vector<std::set<VariableId>>& steps)
      : graph_(graph), accesses_(accesses), step_of_(step_of), steps_(steps) {}

  void run(const Program& program, ElementSets& live) {
    const ProgramNode& node = program.node();
    switch (node.kind) {
      case ProgramKind::sequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) run(*child, live);
        break;
      case ProgramKind::call: run(graph_.functions[node.function.index()], live); break;
      case ProgramKind::repeat: repeat(node, live); break;
      case ProgramKind::repeat_while: repeat_while(node, live); break;
      case ProgramKind::branch:
      case ProgramKind::switch_case: alternatives(node, live); break;
      default: leaf(node, live);
    }
  }

 private:
  // What the body needs from the turn before is needed at its end too; a second pass finds all of it, since
  // the body's effect on a set of elements is to take some away and to add others.
  void repeat(const ProgramNode& node, ElementSets& live) {
    if (node.count == 0) return;
    ElementSets once = live;
    run(node.children[0], once);
    if (node.count > 1) {
      add(once, live);
      run(node.children[0], once);
    }
    live = std::move(once);
  }

  void repeat_while(const ProgramNode& node, ElementSets& live) {
    ElementSets at_decision = live;
    leaf(node, at_decision);
    for (int pass = 0; pass < 2; ++pass) {
      ElementSets turn = at_decision;
      run(node.children[0], turn);
      run(node.children[1], turn);
      add(at_decision, turn);
      leaf(node, at_decision);
    }
    run(node.children[0], at_decision);
    live = std::move(at_decision);
  }

  void alternatives(const ProgramNode& node, ElementSets& live) {
    ElementSets before;
    for (const Program& child : node.children) {
      ElementSets one = live;
      run(child, one);
      add(before, one);
    }
    live = std::move(before);
    leaf(node, live);
  }

  void leaf(const ProgramNode& node, ElementSets& live) {
    const LeafAccess access = accesses_.leaf(node);
    const auto step = step_of_.find(&node);
    std::set<VariableId>* record = step == step_of_.end() ? nullptr : &steps_[step->second];
    if (record) {
      for (const auto& [variable, set] : live)
        if (!set.empty()) record->insert(variable);
      for (const auto& [variable, set] : access.writes) record->insert(variable);
      for (const auto& [variable, set] : access.reads) record->insert(variable);
    }
    for (const ElementSets* gone : {&access.writes, &access.undefined})
      for (const auto& [variable, set] : *gone) {
        const auto found = live.find(variable);
        if (found == live.end()) continue;
        found->second.remove(set);
        if (found->second.empty()) live.erase(found);
      }
    add(live, access.reads);
  }

  const GraphData& graph_;
  AccessTable& accesses_;
  const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of_;
  std::vector<std::set<VariableId>>& steps_;
};

}  // namespace

Liveness analyze_liveness(const GraphData& graph, std::span<const Program> programs, AccessTable& accesses,
                          const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of,
                          std::size_t count) {
  std::vector<std::set<VariableId>> steps(count);
  BackwardWalk walk(graph, accesses, step_of, steps);
  ElementSets kept;  // needed when a program has ended: by the host, by the next run of any program
  for (const auto& [handle, read] : graph.reads) add(kept, element_sets(read.tensor));
  ElementSets needed;
  for (int pass = 0; pass < 2; ++pass) {
    add(kept, needed);
    if (pass == 1) steps.assign(count, {});
    for (const Program& program : programs) {
      ElementSets live = kept;
      walk.run(program, live);
      add(needed, live);
    }
  }
  Liveness liveness;
  for (const ElementSets* sets : {&kept, &needed})
    for (const auto& [variable, set] : *sets)
      if (!set.empty()) liveness.always.insert(variable);
  for (const auto& [handle, write] : graph.writes)
    for (const auto& [variable, set] : element_sets(write.tensor)) liveness.always.insert(variable);
  for (const std::set<VariableId>& step : steps) {
    std::vector<VariableId>& list = liveness.steps.emplace_back();
    for (const VariableId variable : step)
      if (!liveness.always.contains(variable)) list.push_back(variable);
  }
  return liveness;
}

}  // namespace superstep::bsp
