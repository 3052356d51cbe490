// Cross validation: one training for each fold of the data, in one folder that a later call goes on with.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "superstep/run/train/train.h"

namespace superstep::run {

struct FoldResult {
  int fold = 0;  // from 1
  std::int64_t steps = 0, validated = 0;
  std::vector<Metric> metrics;  // loss and quality, on all samples of the fold
};

// Of one metric over the folds.
struct FoldSummary {
  std::string name, unit;
  std::vector<double> values;  // in the order of the folds
  double mean = 0;
  // The deviation over the root of their number. The trainings share most of their samples, so that this is
  // smaller than how far means of new data would scatter (Bengio and Grandvalet 2004: no unbiased estimate).
  double standard_error = 0;
};

// The metrics that all folds have.
std::vector<FoldSummary> summary_of(const std::vector<FoldResult>& folds);

// Trains with folds 1 to settings.folds, each in `options.out`/fold-K (nothing is kept where that is empty),
// and keeps in folds.json what each said as soon as it ends. With options.resume those that are done are read
// and the one that was stopped goes on. `done` is told of each, those of before too. Throws what train()
// throws, and Error (invalid_argument) where the folder holds a run or folds already.
std::vector<FoldResult> train_folds(const TrainSettings& settings, const TrainOptions& options,
                                    const std::function<void(const FoldResult&)>& done);

// Whether that was kept in this folder.
bool holds_folds(const std::filesystem::path& folder);
// What the trainings there were begun with: of folds, or of one run. Throws Error (not_found,
// bad_file) with the file that it read, in its folder.
TrainSettings settings_kept_in(const std::filesystem::path& folder);

}  // namespace superstep::run
