// A model in two arithmetics: its nodes beside each other, and trainings in step.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/lab/numerics/node_differences.h"
#include "superstep/run/train/train_settings.h"

namespace superstep::lab {

struct NumericsQuestion {
  run::TrainSettings model;       // workload, options, data, seed, batch
  std::filesystem::path weights;  // of the nodes' comparison: a run, or those of others; empty: initial ones
  std::string of = "f32", with;   // machine::find_arithmetic, and patterns of nodes behind a ';'
  std::int64_t batch = 0;         // samples of the nodes' comparison; 0: 32, or what a file fixes
  std::int64_t steps = 0;         // of trainings in step; 0: none
  int seeds = 3;                  // of these trainings
  int threads = 1;
};

// The same training in both, from one seed: the same first weights and batches.
struct TrainedPair {
  std::uint64_t seed = 0;
  std::vector<double> of, with;         // the loss of every step
  double final_of = 0, final_with = 0;  // the mean of the last tenth
};

struct NumericsComparison {
  std::string workload, of, with;  // their names in full
  std::string of_words, with_words;
  std::int64_t batch = 0;
  bool trained_weights = false;
  NodeDifferences nodes;
  std::vector<TrainedPair> trainings;
  // Of the final losses: the mean of `with` less `of`, and the standard deviation of `of` over seeds.
  double loss_difference = 0, seed_spread = 0;
  bool within_spread() const { return std::abs(loss_difference) <= seed_spread; }
  std::vector<std::string> sentences;  // what is to be said of it
};

NumericsComparison compare_numerics(const NumericsQuestion& question);

std::string to_text(const NumericsComparison& comparison, bool all_nodes);
nlohmann::json to_json(const NumericsComparison& comparison);
void write_page(const NumericsComparison& comparison, const std::filesystem::path& path);

}  // namespace superstep::lab
