// A training step of a batch that units of a machine share as replicas, each taking its part at once: what a
// measured number of updates is multiplied with.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/lab/graphs_by_batch.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"
#include "superstep/run/model.h"

namespace superstep::lab {

struct SharedBatch {
  std::string precision;  // empty: what set-ups and the machine's users take
  std::int64_t batch = 0;
  int units = 1;
  int input_bytes = 0;  // as machine::PredictSettings has it
};

// Where a step is cut otherwise to fit, it is still one update of the whole batch. Throws Error (unsupported)
// where the units do not share the batch evenly, and what machine::answer() throws.
machine::Prediction predict_shared(const machine::Machine& machine, const run::Model& model,
                                   GraphsByBatch& graphs, const SharedBatch& asked);

// Throws Error (unsupported): it does not fit, or operators have no cost model.
void require_possible(const machine::Prediction& prediction);

}  // namespace superstep::lab
