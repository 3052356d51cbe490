// Weights that other programs wrote, as a model's states.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/run/train/train_settings.h"

namespace superstep::run {

// Whether a path names a file of weights, or a folder of them, and not the folder of a training run.
bool is_published_weights(const std::filesystem::path& path);

struct PublishedWeights {
  std::map<std::string, Tensor> states;  // of the model as it is served; recipes that read the file
  std::vector<std::string> unused;       // arrays of the file that the model does not have
};

// The states of the model that `settings` describe. Throws Error: what data::WeightFile throws; unsupported
// for a workload whose names in such files are not known; bad_file that lists every state that the file lacks
// or has of another shape; unsupported for arrays of the file that stand among those that were taken.
PublishedWeights load_published_weights(const TrainSettings& settings, const std::filesystem::path& path);

}  // namespace superstep::run
