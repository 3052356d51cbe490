// The table of workflows.
#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/workflow/conductivity/study.h"
#include "superstep/workflow/workflow.h"

namespace superstep::workflow {

std::span<const Entry> workflows() {
  static const std::vector<Entry> table{conductivity_workflow()};
  return table;
}

const Entry& find_workflow(std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& entry : workflows()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such workflow", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::workflow
