// Predictions over a grid: every machine with every precision, micro-batch, accumulation and number of
// replicas that is asked for. advise searches; a sweep leaves nothing out, for tables and plots of one's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"
#include "superstep/record/result.h"
#include "superstep/run/model.h"

namespace superstep::lab {

struct SweepSettings {
  run::TrainSettings model;
  bool trains = true;
  std::vector<std::string> machines;             // ids or files
  std::vector<std::string> precisions;           // empty: what the machine's users take
  std::vector<std::int64_t> micro_batches = {};  // empty: the model's own
  std::vector<std::int64_t> accumulates = {1}, replicas = {1};
  std::vector<bool> recomputes = {false};
  int device_iterations = 1, loaders = 1;
  int input_bytes = 0;  // as PredictSettings has it
  int threads = 1;
};

struct SweepPoint {
  std::string machine;
  machine::PredictSettings settings;
  machine::Prediction prediction;  // without its list of operators
  std::string refused;             // why there is none: a precision that the machine does not have
  bool done = false;               // a sweep that was stopped has points that are not

  bool fits() const { return done && refused.empty() && prediction.fits; }
};

// The points in the order of the grid, machines outermost. Stopped by a signal it returns with what it has.
// Throws Error: an unknown workload, machine or precision; an operator without a cost model.
std::vector<SweepPoint> sweep(const SweepSettings& settings);

// Those that are done, as commands write them.
std::vector<record::Result> results_of(const std::vector<SweepPoint>& points, const SweepSettings& settings);

// The `most` points with the highest throughput with host data, and how many do not fit. 0: all that are
// done, in the order of the grid.
std::string text_of(const std::vector<SweepPoint>& points, std::size_t most);

// "1,2,8..64": numbers, and doublings between two. Throws Error (invalid_argument) naming `option`.
std::vector<std::int64_t> counts_from(const std::string& text, const std::string& option);

}  // namespace superstep::lab
