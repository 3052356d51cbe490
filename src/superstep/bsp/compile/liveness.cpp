#include "superstep/bsp/compile/liveness.h"

#include <algorithm>

namespace superstep::bsp {
namespace {

// Elements whose values are still needed. Of the variables that are not live all the time it knows which have
// any: a program of thousands of steps over thousands of variables is gone through without looking at all of
// these at each of those.
class Live {
 public:
  explicit Live(const std::set<VariableId>& always) : always_(&always) {}
  Live(const ElementSets& sets, const std::set<VariableId>& always) : Live(always) { add(sets); }

  const ElementSets& sets() const { return sets_; }
  const std::set<VariableId>& passing() const { return passing_; }

  void add(const ElementSets& more) {
    for (const auto& [variable, set] : more) {
      if (set.empty()) continue;
      sets_[variable].add(set);
      if (!always_->contains(variable)) passing_.insert(variable);
    }
  }
  void remove(const ElementSets& gone) {
    for (const auto& [variable, set] : gone) {
      const auto found = sets_.find(variable);
      if (found == sets_.end()) continue;
      found->second.remove(set);
      if (!found->second.empty()) continue;
      sets_.erase(found);
      passing_.erase(variable);
    }
  }

 private:
  const std::set<VariableId>* always_;
  ElementSets sets_;
  std::set<VariableId> passing_;
};

// Goes through a program from its end to its beginning with the elements whose values are still needed.
class BackwardWalk {
 public:
  // Notes the variables of each step but those in `always`; without `steps` none.
  BackwardWalk(const GraphData& graph, AccessTable& accesses,
               const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of,
               const std::set<VariableId>& always, std::vector<std::set<VariableId>>* steps)
      : graph_(graph), accesses_(accesses), step_of_(step_of), always_(always), steps_(steps) {}

  void run(const Program& program, Live& live) {
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
  void repeat(const ProgramNode& node, Live& live) {
    if (node.count == 0) return;
    Live once = live;
    run(node.children[0], once);
    if (node.count > 1) {
      once.add(live.sets());
      run(node.children[0], once);
    }
    live = std::move(once);
  }

  void repeat_while(const ProgramNode& node, Live& live) {
    Live at_decision = live;
    leaf(node, at_decision);
    for (int pass = 0; pass < 2; ++pass) {
      Live turn = at_decision;
      run(node.children[0], turn);
      run(node.children[1], turn);
      at_decision.add(turn.sets());
      leaf(node, at_decision);
    }
    run(node.children[0], at_decision);
    live = std::move(at_decision);
  }

  void alternatives(const ProgramNode& node, Live& live) {
    Live before(always_);
    for (const Program& child : node.children) {
      Live one = live;
      run(child, one);
      before.add(one.sets());
    }
    live = std::move(before);
    leaf(node, live);
  }

  void leaf(const ProgramNode& node, Live& live) {
    const LeafAccess access = accesses_.leaf(node);
    if (steps_) note(node, access, live);
    live.remove(access.writes);
    live.remove(access.undefined);
    live.add(access.reads);
  }

  void note(const ProgramNode& node, const LeafAccess& access, const Live& live) {
    const auto step = step_of_.find(&node);
    if (step == step_of_.end()) return;
    std::set<VariableId>& record = (*steps_)[step->second];
    record.insert(live.passing().begin(), live.passing().end());
    for (const ElementSets* sets : {&access.writes, &access.reads})
      for (const auto& [variable, set] : *sets)
        if (!always_.contains(variable)) record.insert(variable);
  }

  const GraphData& graph_;
  AccessTable& accesses_;
  const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of_;
  const std::set<VariableId>& always_;
  std::vector<std::set<VariableId>>* steps_;
};

void insert_variables(const ElementSets& sets, std::set<VariableId>& variables) {
  for (const auto& [variable, set] : sets)
    if (!set.empty()) variables.insert(variable);
}

}  // namespace

Liveness analyze_liveness(const GraphData& graph, std::span<const Program> programs, AccessTable& accesses,
                          const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of,
                          std::size_t count) {
  std::vector<std::set<VariableId>> steps(count);
  ElementSets kept;  // needed when a program has ended: by the host, by the next run of any program
  for (const auto& [handle, read] : graph.reads) add(kept, element_sets(read.tensor));
  Liveness liveness;
  ElementSets needed;
  for (const bool last : {false, true}) {
    add(kept, needed);
    insert_variables(kept, liveness.always);
    BackwardWalk walk(graph, accesses, step_of, liveness.always, last ? &steps : nullptr);
    for (const Program& program : programs) {
      Live live(kept, liveness.always);
      walk.run(program, live);
      add(needed, live.sets());
    }
  }
  insert_variables(needed, liveness.always);
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
