// What the files of gin share: sizes, the samples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/transform/training/loss.h"
#include "superstep/workload/chemistry/molecule_samples.h"
#include "superstep/workload/graph_packs.h"

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

struct AssayedSample : MoleculeSample {  // its label: 1 active, 0 not; exact: the probability of that
  std::string scaffold;
};

std::unique_ptr<Task> open_molecules(const TaskSettings& settings, const Options& model);

double probability_of(double log_odds);
std::string present_activity(const MoleculeAnswers& answers, page::Page& page);

}  // namespace superstep::workload
