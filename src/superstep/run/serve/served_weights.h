// Weights for a model that is served: those of a run, or that others wrote.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/run/train/train.h"

namespace superstep::run {

// The parameters of a finished or interrupted run, and what the model was built with.
struct Weights {
  TrainSettings settings;
  std::map<std::string, Tensor> states;
  std::string where;       // the file they came from
  bool has_digest = true;  // false: of an older version's run: nobody knows whether they are as written
  bool of_a_run = true;    // false: of a file that another program wrote (published_weights.h)
  std::vector<std::string> unused;  // arrays of such a file that the model does not have
};

// The best checkpoint of a run's folder, else its newest: as it is served, or, to train on, as it is. Throws
// Error (not_found, bad_file).
Weights load_weights(const std::filesystem::path& folder, bool to_train = false);
// Those of a run's folder, which must be one of `model`'s workload, or of a file or folder that another
// program wrote, for the model that `model` describes. Throws Error: what load_weights() and
// load_published_weights() throw, invalid_argument for a run of another workload, and for options beside a
// run.
Weights load_weights_for(const TrainSettings& model, const std::filesystem::path& path,
                         bool to_train = false);

// Weights of a model that dropped nothing out in training have no counter of masks: it begins at zero.
std::map<std::string, Tensor> states_with_counter(const Weights& weights);

}  // namespace superstep::run
