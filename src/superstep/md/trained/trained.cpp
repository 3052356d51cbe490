#include "superstep/md/trained/trained.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::md {
namespace {

constexpr TrainedPotential table[] = {{"schnet", open_schnet}, {"deepmd", open_deepmd}};

}  // namespace

std::string trained_workloads() {
  std::vector<std::string> names;
  for (const TrainedPotential& each : table) names.emplace_back(each.workload);
  return join(names, ", ");
}

std::unique_ptr<ForceField> open_trained(const std::filesystem::path& folder, data::Configuration& start,
                                         int threads) {
  const run::Weights weights = run::load_weights(folder);
  for (const TrainedPotential& each : table)
    if (weights.settings.workload == each.workload) return each.open(weights, start, threads);
  throw Error(ErrorCode::unsupported,
              fmt::format("is a run of {}, whose models give no forces on atoms", weights.settings.workload),
              folder.string(), fmt::format("runs of these do: {}", trained_workloads()));
}

}  // namespace superstep::md
