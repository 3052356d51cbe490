// A workload's training step and its serving, timed by the protocol: with the data resident, with the data
// pipeline, and under load.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "superstep/lab/bench/primitive_bench.h"
#include "superstep/lab/measure/load.h"
#include "superstep/lab/measure/protocol.h"
#include "superstep/record/result.h"

namespace superstep::lab {

struct WorkloadBenchSettings {
  std::string workload;             // of the zoo, or a model file (.onnx)
  std::vector<std::string> shapes;  // of a model file: extents that it leaves open
  std::vector<std::string> bounds;  // of a model file: how long results may be whose length the data say
  std::string loss;                 // of a model file that is trained
  std::vector<std::string> modes{"train", "infer"};
  std::vector<std::int64_t> batches;  // empty: the workload's own for training, 1 and 512 for serving;
                                      // of a model file the one that it fixes, or 1
  std::vector<std::string> precisions{"f32"};
  std::vector<std::string> gradients{"reverse"};  // of training: transform/training/gradient_mode.h
  std::vector<std::string> model_options;         // name=value
  std::string target = "cpu";
  std::int64_t micro_batch = 0;  // 0: the target chooses
  int threads = 1;
  int repeat = 1;
  Protocol protocol;
  std::vector<LoadSettings> loads;  // of serving
  std::string python;  // of a model file that is served: the interpreter of the peers beside it; empty:
                       // none
  double load_factor =
      0;                  // Poisson arrivals without a rate come at this share of the rate of a single stream
  bool energy = false;    // ten more seconds of calls, where the host counts energy; else it is said
  bool timeline = false;  // also record how long each step of the plan takes
  std::uint64_t seed = 1;
  std::function<void(const record::Result&)> done = {};
};

// How many results there will be.
std::size_t count_results(const WorkloadBenchSettings& settings);

// Throws Error: an unknown workload, one that the target cannot compile, a result that does not agree with
// the reference evaluation.
std::vector<record::Result> bench_workload(const WorkloadBenchSettings& settings, const MachinePeak& peak);

}  // namespace superstep::lab
