// How long the calls of an executable take: what `infer` and `report` say of latency and throughput.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/target/target.h"

namespace superstep::run {

// How much time a timing may take. A slow model is timed by fewer calls than `most_calls`: by those that
// `seconds` hold, but `fewest_calls`.
struct TimingEffort {
  int warm_up_calls;
  double warm_up_seconds;
  std::int64_t most_calls, fewest_calls;
  double seconds;
};

// Where speed is what was asked for; and where answers were, whose calls have warmed everything up.
inline constexpr TimingEffort thorough_timing{10, 2, 200, 3, 20}, brief_timing{0, 0, 200, 1, 0.1};

// Seconds of each call of each executable on one batch of inputs, in turn, so that a busy neighbour slows all
// alike. Throws Error (interrupted).
std::vector<std::vector<double>> time_calls(std::span<target::Executable* const> executables,
                                            std::span<const Tensor> inputs, const TimingEffort& effort);

// Throughput (samples/s, from the median call), latency_mean, latency_p50, and higher percentiles where there
// are calls enough for them (s). `seconds`: of calls of `batch` samples each, one at least.
std::vector<Metric> serving_metrics(std::vector<double> seconds, std::int64_t batch);

// These of one executable, from at most `calls` calls.
std::vector<Metric> measure_serving(target::Executable& executable, std::int64_t batch,
                                    std::span<const Tensor> inputs, std::int64_t calls);

}  // namespace superstep::run
