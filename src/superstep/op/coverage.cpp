#include "superstep/op/coverage.h"

#include "superstep/op/definition.h"

namespace superstep::op {

std::vector<Coverage> coverage() {
  std::vector<Coverage> rows;
  for (const Definition& definition : all())
    rows.push_back({std::string(definition.name), definition.since_opset, definition.evaluate != nullptr,
                    definition.vjp != nullptr, definition.jvp != nullptr, definition.decompose != nullptr});
  return rows;
}

TextTable coverage_table() {
  TextTable table({"operator", "opset", "evaluation", "vjp", "jvp", "decomposition"});
  const auto word = [](bool has) { return std::string(has ? "yes" : "-"); };
  for (const Coverage& row : coverage())
    table.add_row({row.name, row.since_opset ? std::to_string(row.since_opset) : "ours", word(row.evaluation),
                   word(row.vjp), word(row.jvp), word(row.decomposition)});
  return table;
}

}  // namespace superstep::op
