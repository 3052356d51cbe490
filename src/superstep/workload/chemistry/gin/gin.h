// What the files of gin share: sizes, the samples.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "superstep/baseline/chemistry/activity.h"
#include "superstep/transform/training/loss.h"
#include "superstep/workload/graph_packs.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Room of a pack, and how many layers of which width.
struct GinSizes {
  PackCapacity pack;
  std::int64_t layers = 5, width = 64;
  double dropout = 0.1;
};
std::vector<OptionSpec> gin_options();
GinSizes gin_sizes(const Options& options);

// The cross entropy of log-odds; a place of a pack without a molecule counts nothing, and the others more by
// as much, so that it is a mean over molecules.
op::Var loss_of_odds(transform::LossPorts& ports);

struct DrawnMolecule {
  std::string smiles;
  std::string place;  // where it was read: "molecules.csv, line 7"
  baseline::AssayedMolecule assayed;
  double probability = NAN;  // of being measured active, of a generated one
};

std::unique_ptr<Task> open_molecules(const TaskSettings& settings, const Options& model);

// What the network says of some molecules, beside what was measured.
struct ActivityPredictions {
  std::vector<const DrawnMolecule*> molecules;
  std::vector<std::int64_t> samples;        // numbers of the molecules
  std::vector<double> odds;                 // logarithms
  std::vector<std::vector<double>> shares;  // of the atoms of each; empty where they were not asked for
};
double probability_of(double odds);
std::string present_activity(const ActivityPredictions& predictions, page::Page& page);

}  // namespace superstep::workload
