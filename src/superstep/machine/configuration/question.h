// What is asked of a machine, and what of it is said: the question that every prediction begins with, whether
// a user types it or a published row states it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"

namespace superstep::machine {

// Facts of a configuration that are given. 0, empty: not said.
struct Stated {
  std::string precision;
  std::int64_t micro_batch = 0, global_batch = 0;  // global: samples of an update over all replicas
  int units = 0, replicas = 0, accumulate = 0, stages = 0;
  std::vector<int> pipeline;  // relative layers a stage
  std::vector<int> chips;     // of each stage, where one has several
  std::optional<bool> recompute;
  int loaders = 0, device_iterations = 0, input_bytes = 0;
};

// One fact of a configuration and where it comes from: "micro-batch 20", "set-up poptorch/resnet50 (...)".
struct Fact {
  std::string what, source;
};

struct Question {
  std::string workload;  // a name of set-ups: a workload or a form of one; empty: a model that has none
  std::string data_of;   // the workload whose data facts count; empty: none
  std::string software;  // a stack's name; empty: any
  bool training = true;
  std::int64_t length = 0;              // of sequences; 0: the model's own
  std::string usual_precision = "f16";  // where neither the question nor a set-up says one
  std::int64_t fixed_batch = 0;         // the only micro-batch of a model file; 0: any
  // The micro-batch of the zoo's recipe, or of an answer at once. `own_recipe`: it is what is meant where no
  // set-up says otherwise; else one of several that a table may have meant.
  std::int64_t recipe_batch = 0;
  bool own_recipe = false;
  bool packed = false;  // its samples are sequences of which several are packed into one item
  double samples_per_item = 1, sample_seconds = 0;  // as PredictSettings has them
  Stated stated;
  std::vector<Fact> facts;  // that were said elsewhere, and by whom: a sibling row's
};

// The model at a micro-batch; what it gives stays where it is.
using GraphAt = std::function<const graph::Graph&(std::int64_t micro_batch)>;

struct Configuration {
  PredictSettings settings;
  std::vector<Fact> facts;    // those that were not stated with the question
  double packed_samples = 1;  // samples in an item of the batch
  bool balance = false;       // the pipeline has stages of as many layers each, until they are balanced
  bool may_change = false;    // how a step is cut was not stated: it may be cut otherwise to fit
};

}  // namespace superstep::machine
