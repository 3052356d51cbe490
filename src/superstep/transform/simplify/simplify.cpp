// The pass: one sweep in order, so that a node is looked at when its inputs are simple already. Each family
// of rules has a file of its own.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/transform/border.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

using RuleTable = std::map<std::string_view, std::vector<Rule>>;

RuleTable make_table() {
  RuleTable table;
  for (const auto& family :
       {arithmetic_rules(), layout_rules(), broadcast_rules(), cast_rules(), random_rules(), index_rules()})
    for (const Rule& rule : family) table[rule.op].push_back(rule);
  return table;
}

std::span<const Rule> rules_for(const Node& node) {
  static const RuleTable table = make_table();
  const auto found = table.find(node.op);
  return found == table.end() ? std::span<const Rule>() : found->second;
}

bool has_only_first_output(const Node& node) {
  return !node.outputs.empty() && node.outputs[0].valid() &&
         std::none_of(node.outputs.begin() + 1, node.outputs.end(), [](ValueId id) { return id.valid(); });
}

class Simplifier {
 public:
  explicit Simplifier(const Graph& old) : rewrite_(old), gradient_(gradient_values(old)) {}

  bool run(Graph& graph) {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    if (!changed_) return false;
    graph = prune(rewrite_.finish());
    return true;
  }

 private:
  void visit(const Node& node) {
    const Var simpler = has_only_first_output(node) ? simplified(node) : Var();
    if (!simpler.valid()) return rewrite_.keep(node);
    rewrite_.replace(node, std::span(&simpler, 1));
    changed_ = true;
  }

  Var simplified(const Node& node) {
    const std::span<const Rule> rules = rules_for(node);
    if (rules.empty()) return {};
    const Site site{rewrite_.builder(), node, rewrite_.old().type(node.outputs[0]),
                    rewrite_.now(node.inputs)};
    for (const Rule& rule : rules)
      if (const Var found = rule.apply(site); found.valid() && stays_in_phase(node, found)) {
        check_type(site, found);
        return found;
      }
    return {};
  }

  // A gradient must stay one that is computed in phase backward.
  bool stays_in_phase(const Node& node, Var replacement) {
    return !gradient_[node.outputs[0].index()] ||
           phase_of(rewrite_.graph(), replacement.id()) == Phase::backward;
  }

  static void check_type(const Site& site, Var found) {
    if (found.type() != site.type)
      throw Error(ErrorCode::internal,
                  fmt::format("a rule of simplify made {} out of {}", graph::to_string(found.type()),
                              graph::to_string(site.type)),
                  describe(site.node));
  }

  Rewrite rewrite_;
  std::vector<bool> gradient_;  // by old value
  bool changed_ = false;
};

}  // namespace

bool simplify(Graph& graph) { return Simplifier(graph).run(graph); }

}  // namespace superstep::transform
