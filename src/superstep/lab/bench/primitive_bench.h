// The primitives' benchmark: configurations x modes x precisions, checked, then timed by the protocol, as
// results with FLOPS by both formulas and shares of the measured peak.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/measure/protocol.h"
#include "superstep/record/result.h"

namespace superstep::lab {

struct PrimitiveBenchSettings {
  std::vector<Primitive> primitives;
  std::vector<std::string> precisions{"f32"};
  std::vector<std::string> modes{"train", "infer"};  // of name_of(Passes)
  std::int64_t batch = 0;  // 0: the configuration's own, twice that in half precision
  std::string target = "cpu";
  int threads = 1;
  int repeat = 1;  // rounds over everything; their samples are joined
  Protocol protocol;
  // Of the memory that is free: beyond it the batch is halved, and the result says so; or, where batches are
  // to stay whole (a sweep), the configuration is not run.
  double memory_share = 0.6;
  bool whole_batches = false;
  bool energy = false;    // ten more seconds of calls, where the host counts energy; else it is said
  bool timeline = false;  // also record how long each step of the plan takes
  std::function<void(const record::Result&)> done = {};  // called after each result
};

// What this machine can do at most, measured once: FLOP/s by precision ("f32", "bf16", "int8"; 0: no such
// instruction) and B/s of copies in memory (0: too little memory to measure them in).
struct MachinePeak {
  std::map<std::string, double> flops;
  double copy_bandwidth = 0;
  int threads = 1;
};
MachinePeak measure_peak(int threads, const std::vector<std::string>& precisions);
// What a precision is held against, FLOP/s: f16 runs on f32 units where there is nothing better. 0: unknown.
double peak_of(const MachinePeak& peak, const std::string& precision);

// Precisions of one configuration and mode are interleaved. What a target cannot run, or computes wrongly
// ("wrong"), is a result without metrics whose config says why ("not_run"). Results come without program and
// environment.
std::vector<record::Result> bench_primitives(const PrimitiveBenchSettings& settings, const MachinePeak& peak);

}  // namespace superstep::lab
