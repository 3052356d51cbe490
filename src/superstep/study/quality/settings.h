// Time to quality: what is asked. Which batch, in which precision, on how many devices, until a quality is
// reached; and what that takes in time, energy and money.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/run/train/until.h"

namespace superstep::study {

// How the learning rate follows the batch, from the recipe's own batch and rate on: in proportion (Goyal et
// al. 2017, for SGD), with its square root (Krizhevsky 2014; for Adam and its kin), or not at all.
enum class RateRule { none, square_root, linear };
const char* name_of(RateRule rule);           // "none", "sqrt", "linear"
RateRule rate_rule(const std::string& name);  // throws Error (invalid_argument)

struct QualitySettings {
  std::string workload;              // of the zoo
  std::vector<std::string> options;  // of the model, name=value
  run::Until until;
  std::vector<std::int64_t> batches;
  std::vector<std::string> precisions;  // f32, bf16, f16
  int seeds = 3;
  std::int64_t samples = 0;  // of the data; 0: the recipe's
  double epochs = 0;         // at most; 0: the recipe's
  RateRule rule = RateRule::none;
  std::vector<std::string> machines;
  std::vector<int> units;                // devices of each machine
  std::map<std::string, double> prices;  // of a unit-hour, by machine
  std::filesystem::path out;
  int threads = 1;
};

// Throws Error (invalid_argument): no such workload, metric, precision or machine; a batch larger than the
// data are; no seed.
void check(const QualitySettings& settings);

}  // namespace superstep::study
