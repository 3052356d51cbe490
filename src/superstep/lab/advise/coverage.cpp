#include "superstep/lab/advise/coverage.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/machine/operator_list.h"
#include "superstep/transform/expand.h"

namespace superstep::lab {
namespace {

std::map<std::string, int> counted(const graph::Graph& graph) {
  std::map<std::string, int> operators;
  for (const graph::Node& node : graph.nodes()) ++operators[node.op];
  return operators;
}

std::string with_count(const std::string& op, int count) {
  return count == 1 ? op : fmt::format("{} ({})", op, count);
}

std::string list_words(const Coverage& one) {
  std::vector<std::string> parts;
  if (!one.missing.empty()) parts.push_back("lacks " + join(one.missing, ", "));
  if (!one.untrained.empty()) parts.push_back("has no derivative of " + join(one.untrained, ", "));
  if (parts.empty()) return fmt::format("{} takes all {} kinds of operators", one.stack, one.kinds);
  return fmt::format("{} {}", one.stack, join(parts, ", "));
}

}  // namespace

std::map<std::string, int> onnx_operators(const graph::Graph& graph) {
  try {
    return counted(transform::expand_to_onnx(graph));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return counted(graph);
  }
}

std::vector<Coverage> coverage_of(const machine::Machine& machine,
                                  const std::map<std::string, int>& operators, bool trains) {
  std::vector<Coverage> found;
  for (const machine::OperatorList* list : machine::operator_lists_of(machine.id())) {
    if (trains && list->serves_only) continue;
    Coverage one{.stack = list->name, .source = list->source, .kinds = static_cast<int>(operators.size())};
    for (const auto& [op, count] : operators) {
      if (!list->takes(op))
        one.missing.push_back(with_count(op, count));
      else if (trains && list->no_derivative.contains(op))
        one.untrained.push_back(with_count(op, count));
    }
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<std::string> coverage_words(const std::vector<Coverage>& coverage,
                                        const machine::Machine& machine) {
  std::vector<std::string> words;
  for (const Coverage& one : coverage) words.push_back(list_words(one));
  if (!words.empty()) return words;
  if (machine.has_stack("pytorch-eager")) return {"PyTorch runs operators one by one on it, all of them"};
  return {"no public list says which operators its compiler takes"};
}

}  // namespace superstep::lab
