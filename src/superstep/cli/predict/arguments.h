// What a call of `predict` says.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "superstep/cli/predict/by_law.h"
#include "superstep/cli/shared/chip_options.h"

namespace superstep::cli {

struct PredictArguments {
  std::vector<std::string> shapes, bounds;  // of a model file
  std::string workload, machine = "gc200", mode = "train", precision, stack, scaling;
  ChipArguments chips;
  std::int64_t micro_batch = 0, batch = 0;
  int device_iterations = 1, loaders = 1;
  double sample_seconds = 0, measure = 0;
  std::string input_type;
  LanguageArguments language;
  bool explain = false, recompute = false, largest = false, approximate = false, provenance = false,
       extrapolate = false;
  std::vector<std::string> settings;
  std::set<std::string> said;  // of the options with a default, those that the call has
};

}  // namespace superstep::cli
