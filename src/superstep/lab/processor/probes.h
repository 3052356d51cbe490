// Small networks of random shapes, whose steps are timed to know what the engine's kernels take on this
// machine. None of them is a workload of the zoo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/target/target.h"

namespace superstep::lab {

struct Probe {
  std::string name;  // "convolutions 3"
  bool trains = false;
  std::string precision = "f32";
  std::int64_t batch = 1, micro_batch = 0;
  target::GraphAtBatch graph;  // of the training step, or the model as served
};

// The same for the same number: shapes, batches and weights are drawn from it.
Probe probe(std::uint64_t number);

// How many are measured: every kind of network in every mode some times over.
inline constexpr std::uint64_t probe_count = 140;

}  // namespace superstep::lab
