// Every workload that is a force field: one line each.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/workload/atom_model.h"
#include "superstep/workload/chemistry/schnet/schnet.h"
#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

struct Row {
  std::string_view workload;
  std::unique_ptr<AtomModel> (*open)(const std::vector<int>& elements, const Options& model);
};
constexpr Row rows[] = {{"deepmd", deepmd_atoms}, {"schnet", schnet_atoms}};

}  // namespace

std::unique_ptr<AtomModel> open_atoms(std::string_view workload, const std::vector<int>& elements,
                                      const Options& model) {
  for (const Row& row : rows)
    if (row.workload == workload) return row.open(elements, model);
  throw Error(ErrorCode::unsupported,
              fmt::format("is a run of '{}', whose models give no forces on atoms", workload), {},
              fmt::format("runs of these do: {}", atom_workloads()));
}

std::string atom_workloads() {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.workload);
  return join(names, ", ");
}

}  // namespace superstep::workload
