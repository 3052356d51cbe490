// The configurations of a measured processor that are worth a prediction: the plans that would run on it.
#pragma once

#include <vector>

#include "superstep/lab/advise/search.h"
#include "superstep/run/model.h"

namespace superstep::lab {

// In f32 and bf16: a training's batch, or answers of one sample and of many together. Throws Error
// (unsupported) where its kernels are of other instructions than this computer's.
std::vector<Option> options_on_processor(const machine::Machine& machine, const run::TrainSettings& model,
                                         int threads, const SearchSettings& settings);

}  // namespace superstep::lab
