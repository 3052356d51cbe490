// Load on a server and how long its answers take.
//
// Open loop: requests are due at times that are drawn beforehand, whatever the server does, and latency
// counts from when a request was due. A client that waits for an answer before it sends the next leaves out
// the requests that a slow server would have kept waiting ("coordinated omission").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "superstep/edge/load/target.h"

namespace superstep::edge {

enum class Arrivals { constant, poisson };

struct LoadSettings {
  double rate =
      0;  // requests per second, open loop; 0: closed loop, every connection sends as it has an answer
  int connections = 64;  // at the same time
  Arrivals arrivals = Arrivals::poisson;
  std::int64_t rows = 1;
  bool binary = true;
  double warm_up = 0.5, seconds = 5;
  std::uint64_t seed = 1;
};

struct LoadReport {
  std::vector<double> latencies;  // seconds, of requests that were answered with 200, ascending
  std::vector<double>
      lateness;  // seconds by which the client itself sent late, with a connection free; ascending
  std::map<int, std::uint64_t> statuses;  // of all in the measured time; 0: the connection broke
  double seconds = 0;
  std::uint64_t due = 0;         // requests of the measured time
  std::uint64_t unanswered = 0;  // of them, when the patience of 10 s was over
  bool steady = false;           // the medians of three thirds of the time are within 10 % of each other
  ServerTimes server;            // what it says of the measured time

  double reached() const;  // answered with 200, a second
};

// Throws Error (io) where nobody answers, (interrupted).
LoadReport apply_load(const LoadTarget& target, const LoadSettings& settings);

}  // namespace superstep::edge
