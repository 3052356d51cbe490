// How well a model does by the names that its field uses: what --metrics takes, for a user's own model.
//
// Which there are depends on what the loss compares: numbers (mse, l1, huber, ...), shares of yes and no
// (bce, focal, dice, ...), classes (cross_entropy, nll), distributions (kl_div), directions (cosine),
// triplets (triplet_margin) or sequences of labels (ctc).
// Definitions are those of scikit-learn (sklearn.metrics); averages over classes are "macro" ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/transform/training/loss.h"
#include "superstep/workload/workload.h"

namespace superstep::run {

// A metric by name, of one output or of every one that has it.
struct MetricChoice {
  std::string name;
  std::string output;  // empty: every one
};
// "r2,mae:position". Throws Error (invalid_argument) naming --metrics, with the nearest name there is.
std::vector<MetricChoice> metrics_from_text(std::string_view text);

// What a loss of this kind is judged by where nothing is chosen, and all that it can be judged by; the first
// of the former is what a run's best weights are kept by. Units are empty.
std::vector<std::string> default_metrics(transform::LossKind kind);
std::vector<std::string> metrics_for(transform::LossKind kind);
bool higher_is_better(std::string_view metric);

// Answers of some samples beside their truth.
struct Compared {
  const transform::LossTerm& term;
  const Tensor& output;              // [n, ...]: as the model gives it, logarithms and scores included
  const Tensor& truth;               // [m, ...]: rows, of which `at` are those of the samples
  std::span<const std::int64_t> at;  // n rows of `truth` and of `mask`
  const Tensor* mask = nullptr;      // what each element counts; null: one
  const Tensor* variance = nullptr;  // of gaussian_nll, [n, ...]
  const Tensor *positive = nullptr, *negative = nullptr;             // of triplet_margin, [n, ...]
  const Tensor *input_lengths = nullptr, *target_lengths = nullptr;  // of ctc, [m]; null: as its loss has it
  std::int64_t classes = 0,
               inner = 1;  // of labels: how many, and how far scores of a place's classes lie apart
};

// The metrics of these names, in their order. What has no value is NaN: R2 of a constant, an AUC of one
// class.
std::vector<double> measure(std::span<const std::string> names, const Compared& compared);

}  // namespace superstep::run
