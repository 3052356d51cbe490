// A measured or predicted quantity, as every result carries it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace superstep {

enum class How { measured, predicted };

struct Metric {
  std::string name;  // without a unit: "throughput", "error_px_mean"
  double value = 0;
  std::string unit;  // SI: "s", "samples/s", "FLOP/s", "B"; "px"; "" for fractions
  How how = How::measured;
  std::vector<double> samples;      // all of them, where there are several
  std::optional<double> low, high;  // interval of a prediction
};

}  // namespace superstep
