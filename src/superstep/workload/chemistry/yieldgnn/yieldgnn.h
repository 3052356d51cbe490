// What the files of yieldgnn share: sizes, reactions as they are read, the samples.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "superstep/physics/chemistry/molecule_descriptors.h"
#include "superstep/physics/chemistry/yield_reactions.h"
#include "superstep/transform/training/loss.h"
#include "superstep/workload/chemistry/molecule_samples.h"
#include "superstep/workload/graph_packs.h"

namespace superstep::workload {

inline constexpr int reaction_descriptors = data::role_count * data::role_descriptor_count;

// Standardisation is learnt from the training data and then fixed: integers, which no optimiser changes, in
// millionths. 1 / deviation is 0 for a descriptor that does not vary.
inline constexpr const char* descriptor_mean = "descriptors.mean";
inline constexpr const char* descriptor_inverse = "descriptors.inverse_deviation";
inline constexpr double millionths = 1e6;

struct YieldSizes {
  PackCapacity pack;
  std::int64_t largest = 100;  // atoms of a reaction
  std::int64_t depth = 2, width = 200;
  double dropout = 0.04;
  std::int64_t chem = 0;  // units between descriptors and their share of the yield
  double chem_dropout = 0.1;
  bool published_start = false;  // of the weights; else by what comes in
  // Pairs of atoms of one reaction, each once and each atom with itself: n (n + 1) / 2 of n atoms are n
  // (largest + 1) / 2 at most, so that all packs of so many atoms have room.
  std::int64_t pairs() const { return (pack.nodes * (largest + 1) + 1) / 2; }
};
std::vector<OptionSpec> yield_options();
YieldSizes yield_sizes(const Options& options);

// The mean square of the error of yields, as fractions.
op::Var loss_of_yields(transform::LossPorts& ports);

struct Reaction : MoleculeSample {  // all molecules as one graph; its label: the yield, per cent
  std::string id;
  std::array<std::string, data::role_count> of_role;  // SMILES, by role; empty for none
  std::vector<float> descriptors;                     // [reaction_descriptors]
  std::string joined() const;                         // the SMILES of all
};

// Generated, or from the file of the settings: .csv and .tsv, .json, or HDF5 of the generator. Throws Error
// that names file, line or entry, and in it the character of a bad SMILES.
std::vector<Reaction> read_reactions(const TaskSettings& settings);

std::unique_ptr<Task> open_reactions(const TaskSettings& settings, const Options& model);
std::map<std::string, Tensor> fitted_standardisation(const Task& task, const Options& model,
                                                     ThreadPool& pool);

// `reactions`: those of the answers.
std::string present_yields(const MoleculeAnswers& answers, std::span<const Reaction* const> reactions,
                           page::Page& page);

}  // namespace superstep::workload
