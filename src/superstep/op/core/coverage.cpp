#include "superstep/op/core/coverage.h"

#include "superstep/op/core/definition.h"

namespace superstep::op {

std::vector<Coverage> coverage() {
  std::vector<Coverage> rows;
  for (const Definition& definition : all())
    rows.push_back({std::string(definition.name), definition.since_opset, definition.evaluate != nullptr,
                    definition.vjp != nullptr, definition.jvp != nullptr, definition.decompose != nullptr});
  return rows;
}

}  // namespace superstep::op
