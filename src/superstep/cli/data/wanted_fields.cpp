#include "superstep/cli/data/wanted_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/physics/generator.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {

std::vector<WantedField> wanted_fields(std::string_view name) {
  const workload::Workload& workload = workload::find_workload(name);
  std::vector<WantedField> fields;
  const auto generators = data::generators();
  const auto found = std::ranges::find(generators, workload.name, &data::GeneratorEntry::name);
  if (found != generators.end()) {
    const auto generator = found->make(Options(found->options, {}));
    for (const data::Field& field : generator->fields())
      fields.push_back(
          {{.name = field.name, .type = field.type, .row = field.shape}, field.unit, field.meaning});
    return fields;
  }
  for (const auto* ports : {&workload.inputs, &workload.targets})
    for (const workload::PortSpec& port : *ports)
      fields.push_back(
          {{.name = port.name, .type = port.element, .row = port.shape}, port.unit, port.meaning});
  return fields;
}

data::SourceRequest request_for(const std::vector<WantedField>& fields) {
  data::SourceRequest request;
  for (const WantedField& field : fields) request.wanted.push_back(field.array);
  return request;
}

std::string verdict_on(const WantedField& field, const show::Shown& shown) {
  const auto found =
      std::ranges::find(shown.data_sets, field.array.name,
                        [](const show::ShownDataSet& set) -> const std::string& { return set.info.name; });
  if (found == shown.data_sets.end()) return "not there";
  const Shape& shape = found->info.shape;
  const bool fits = shape.rank() == field.array.row.rank() + 1 &&
                    std::equal(shape.begin() + 1, shape.end(), field.array.row.begin(),
                               [](std::int64_t is, std::int64_t want) { return want < 0 || is == want; });
  return fits ? "as wanted" : fmt::format("has {}", to_string(shape));
}

}  // namespace superstep::cli
