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

// Why nothing is predicted of a cell; empty: it is, or the steps that it rests on are measured first.
std::string why_not_predicted(const Cells& cells, const Cell& cell);

// In the order of the cells. Prices are of one unit, in dollars.
std::vector<Figure> predict(const Cells& cells, int threads, const std::vector<Price>& prices = {});

}  // namespace superstep::study
