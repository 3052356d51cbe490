// What the graph networks of polymers share: sizes, the loss, the samples.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "superstep/transform/training/loss.h"
#include "superstep/workload/chemistry/molecule_samples.h"
#include "superstep/workload/graph_packs.h"

namespace superstep::workload {

// Temperatures are learnt as logarithms, in units of about their standard deviation (0.33 of 7,558 generated
// polymers).
inline constexpr double log_kelvin_unit = 0.33;
inline constexpr const char* last_bias = "out.bias";  // of the layer that gives the logarithm, in such units

// Room of a pack, and how many layers of which width.
struct PolymerSizes {
  PackCapacity pack;
  std::int64_t layers = 4, width = 128;
};
std::vector<OptionSpec> polymer_options(const char* width);
PolymerSizes polymer_sizes(const Options& options);

// Huber's loss of the logarithm, in units of its standard deviation; a place of a pack without a polymer
// counts nothing, and the others more by as much, so that it is a mean over polymers.
op::Var loss_of_logarithms(transform::LossPorts& ports);

// Polymers by their SMILES, from a table or generated, in packs. Training learns from four of five folds.
struct PolymerData {
  std::string generator;
  bool with_bonds = false;  // does the model read features of bonds?
};
std::unique_ptr<Task> open_polymers(const PolymerData& data, const TaskSettings& settings,
                                    const Options& model);

// The start of last_bias: the mean logarithm of what training learns from.
std::map<std::string, Tensor> fitted_polymer_mean(const Task& task, const Options& model, ThreadPool& pool);

std::string present_polymers(const MoleculeAnswers& answers, page::Page& page);

}  // namespace superstep::workload
