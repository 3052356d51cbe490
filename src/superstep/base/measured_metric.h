// A metric of which one measured value is known.
#pragma once

#include <string>
#include <utility>

#include "superstep/base/metric.h"

namespace superstep {

inline Metric measured_metric(std::string name, double value, std::string unit) {
  return {.name = std::move(name), .value = value, .unit = std::move(unit), .samples = {}};
}

}  // namespace superstep
