// superstep train --folds: a training for each fold of the data, and their mean.
#pragma once

#include <string>
#include <vector>

#include "superstep/run/train/train.h"

namespace superstep::cli {

// `given`: options of the call, by name. Throws Error (invalid_argument) for those that would make the folds
// that are done and those to come trainings of different lengths.
void refuse_further_folds(const std::vector<std::string>& given, const std::string& folder);

void train_folded(const run::TrainSettings& settings, const run::TrainOptions& options);

}  // namespace superstep::cli
