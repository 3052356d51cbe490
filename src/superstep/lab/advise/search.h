// The configurations of one machine that are worth a prediction: precision, micro-batch, accumulation, split
// over units, recomputation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "superstep/lab/advise/goal.h"
#include "superstep/machine/configuration/question.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"

namespace superstep::lab {

struct SearchSettings {
  machine::Question question;  // whose public set-ups are tried too
  bool trains = true;
  Goal goal = Goal::throughput;
  GoalContext context;
  int units = 1;                        // at most so many, all of them for one model
  std::int64_t most_samples = 1024;     // of a step, over all units
  std::int64_t fixed_batch = 0;         // the only micro-batch of a model file; 0: any
  int input_bytes = 0;                  // as PredictSettings has it
  std::vector<std::string> precisions;  // empty: usual_precisions()
  double latency_limit = 0;             // s of a fed step; 0: none
  double rate_wanted = 0;               // samples/s, of all units; 0: none
};

// One configuration, and what was predicted of it.
struct Option {
  machine::PredictSettings settings;
  machine::Prediction prediction;  // without its list of operators
  Figure figure;                   // of the goal
  bool within_limits = true;       // of latency and rate
  std::string set_up;              // that it is taken from; empty: of none
};

// What the machine's users take, fastest first: `list machines` has the peaks.
std::vector<std::string> usual_precisions(const machine::Machine& machine);

// The model at a micro-batch; called from several threads.
using GraphSource = std::function<const graph::Graph&(std::int64_t micro_batch)>;

// All that was tried, what does not fit too. On one unit micro-batches 1, 2, 4 ... as far as they fit and
// still gain; where not even one sample fits on one unit, recomputed, then in pipelines of 2, 4, ... units.
// The best few are then replicated. Public set-ups of the model are tried before all, with the samples of an
// update that are asked for. `known`: of the same model on other machines. Throws what predict() throws, and
// Error (interrupted).
std::vector<Option> options_on(const machine::Machine& machine, const GraphSource& graph_at,
                               const SearchSettings& settings, machine::PredictionsByLaw& known);

// The best of the options that fit, those within the limits first; null: none fits, or the goal's figure is
// not known of any.
const Option* best_of(const std::vector<Option>& options, Goal goal);

bool better(const Figure& a, const Figure& b, Goal goal);

}  // namespace superstep::lab
