#include "tests/matrix/measure.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "tests/matrix/built.h"

namespace superstep::matrix {
namespace {

bool names(const std::string& step_op, const std::string& op) {
  return ("+" + step_op + "+").find("+" + op + "+") != std::string::npos;
}

}  // namespace

std::map<std::string, std::set<ElementType>> accepted_types() {
  std::map<std::string, std::set<ElementType>> accepted;
  for (const Case& item : op::test::all_cases()) {
    if (item.inputs.empty()) continue;
    for (ElementType element : all_element_types)
      if (build(item, element)) accepted[item.op].insert(element);
  }
  return accepted;
}

std::map<std::string, target::Execution> cpu_execution() {
  std::map<std::string, target::Execution> found;
  for (const Case& item : op::test::all_cases()) {
    auto built = build(item, ElementType::f32);
    if (!built && !item.inputs.empty()) built = build(item, item.inputs[0].type());
    if (!built) continue;
    auto& execution = found.emplace(item.op, target::Execution::compiled_away).first->second;
    const bool has_parts = op::get(item.op).decompose != nullptr;
    bool named = false;
    for (const target::PlanStep& step : run("cpu", *built).steps) {
      if (!names(step.op, item.op)) continue;
      const auto way =
          step.kernel == "reference evaluation" ? target::Execution::definition : target::Execution::kernel;
      execution = std::max(execution, way);
      named = true;
    }
    if (!named && has_parts) execution = std::max(execution, target::Execution::parts);
  }
  return found;
}

}  // namespace superstep::matrix
