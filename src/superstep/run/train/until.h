// The goal of a run: a metric of quality, and the value from which on it is good enough.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/workload/workload.h"

namespace superstep::run {

// Stop when a quality of the validation samples is `value` or better. Which way is better is the metric's
// own.
struct Until {
  std::string metric;
  double value = 0;

  friend bool operator==(const Until&, const Until&) = default;
};

// "METRIC=VALUE". Throws Error (invalid_argument): a value that is no finite number.
Until parse_until(std::string_view text);

// Throws Error (invalid_argument) with the metrics there are, the nearest first.
void check_until(const Until& until, const workload::Workload& workload);

// "error_px_mean <= 0.04", "r2 >= 0.75". Of a metric that check_until takes, as all that follows.
std::string to_string(const Until& until, const workload::Workload& workload);

bool reaches(const Until& until, const workload::Workload& workload, const std::vector<Metric>& quality);

}  // namespace superstep::run
