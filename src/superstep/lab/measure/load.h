// Latency of requests to one server under the three ways they arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/measure/clock.h"

namespace superstep::lab {

enum class LoadPattern {
  single_stream,  // the next request comes when the last is answered
  offline,        // all requests are there at the start
  poisson,        // requests come at random moments, `rate` a second on the average, and wait their turn
};
const char* name_of(LoadPattern pattern);
LoadPattern load_pattern_from_name(std::string_view name);  // throws Error (invalid_argument), nearest name

struct LoadSettings {
  LoadPattern pattern = LoadPattern::single_stream;
  double rate = 0;  // requests/s, of poisson; above 0
  std::int64_t requests = 1000;
  double most_seconds = 60;  // no new request is taken up after that
  std::uint64_t seed = 1;    // of the arrivals
};

struct LoadReport {
  std::vector<double> latency;   // s, from arrival to answer: what a client waits
  std::vector<double> service;   // s, from taking up to answer
  std::vector<double> queueing;  // s, from arrival to taking up
  double throughput = 0;         // requests/s
  double busy_share = 0;         // of the time, the server worked
  std::vector<std::string> flags;
};

// `request` answers one request. Throws Error (invalid_argument) for a rate or a number that is not above 0.
LoadReport run_load(const std::function<void()>& request, const LoadSettings& settings,
                    Clock& clock = steady_clock());

// latency_mean, latency_p50, _p90, _p99, _p999 (those for which there are enough requests), queueing_mean,
// and throughput, with `prefix` before each name ("poisson_").
std::vector<Metric> metrics_of(const LoadReport& report, const std::string& prefix);

}  // namespace superstep::lab
