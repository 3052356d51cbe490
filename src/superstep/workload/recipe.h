// How a workload is trained. Every workload has a quick recipe, which reaches its target in minutes on
// processors; where its authors published one, that is stated beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/transform/training/loss.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/schedule.h"

namespace superstep::workload {

struct Recipe {
  std::int64_t batch = 64;
  double epochs = 1;
  transform::LossSpec loss;
  transform::OptimizerSpec optimizer;
  double learning_rate = 1e-3;  // at its peak
  // The batch that this rate is of, where a run's own is proportional to its batch; 0: one rate for all.
  std::int64_t rate_of_batch = 0;
  Schedule schedule = {};
  double average = 0;  // of the weights, which validates and is served: TrainingStepOptions::average
  // Runs of a sample, with masks, when it is served: the mean is what the model says, and their spread how
  // sure it is. Validation makes one. 0: nothing is dropped but in training.
  int passes = 0;
  // Options of the model that belong to it, name=value: how much is dropped out, how data are prepared.
  std::vector<std::string> model_options = {};
  // Of a published one: where it was published, and what was chosen here because it was not; a literal.
  std::string_view source = {};
};

enum class RecipeName : std::uint8_t { quick, published };

const char* name_of(RecipeName name);
RecipeName recipe_name_from_text(std::string_view text);  // throws Error (invalid_argument), nearest name

// In words, on one line: "adamax at 0.0001, plateau, batch 32, 50 epochs".
std::string to_string(const Recipe& recipe);

}  // namespace superstep::workload
