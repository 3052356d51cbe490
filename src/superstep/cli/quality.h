// How good a trained model is, beside its target and what other methods reach on the same samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "superstep/run/quality.h"
#include "superstep/run/train.h"

namespace superstep::cli {

// Of the samples that the training did not see; nothing where none were measured. Methods that would take
// longer than the training did are not run. Kept in `folder` as quality.json, where there is one.
std::optional<run::Quality> judge_training(const std::string& workload, const run::TrainReport& report,
                                           const std::filesystem::path& folder);

// A table of the model, target and methods, and the verdict under it.
void print_quality(const std::optional<run::Quality>& quality);

}  // namespace superstep::cli
