// One fold of a cross validation: a task of which another part of the samples validates.
#pragma once

#include <memory>

#include "superstep/run/task.h"

namespace superstep::run {

// Of settings with folds. Throws Error (invalid_argument): fewer than two folds, a fold that is none of them,
// samples of their own to validate on, a model option that names a fold.
void check_folds(const TaskSettings& settings);

// Fold `settings.fold` of `settings.folds`: the samples in the order of the data, cut into so many parts of
// as many samples (one more or less; groups are not cut), of which that part validates and the others train.
// A task that heeds folds is it already. Throws Error: invalid_argument where a fold has no samples, or none
// are left to train; unsupported where samples can only be read in their order, or where augmented batches
// are of the samples that train by default.
std::unique_ptr<Task> folded(std::unique_ptr<Task> task, const TaskSettings& settings, bool augments);

}  // namespace superstep::run
