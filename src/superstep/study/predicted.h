// What is predicted of a study's cells, by the same way as `superstep validate`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "superstep/study/cells.h"

namespace superstep::study {

// A figure of a cell in its row's unit.
struct Figure {
  std::optional<double> value;
  double low = 0, high = 0;  // 0: no interval
  std::string words;         // how it came about, or why there is none
  bool memory_ends = false;  // there is none because it does not fit
  bool inside(double other) const { return high > 0 && low <= other && other <= high; }
};

// In the order of the cells.
std::vector<Figure> predict(const Cells& cells, int threads);

}  // namespace superstep::study
