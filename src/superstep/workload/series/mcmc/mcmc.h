// The parts of workload mcmc: rows of returns, standardised over a window.
#pragma once

#include "superstep/workload/table.h"

namespace superstep::workload {

// Rows of one series, in time: x [rows, 22] the returns before, the last one first, y [rows] the next, and
// where the data know them expected and deviation [rows], by the process that made them.
//
// Files: HDF5 or CSV as `superstep generate mcmc` writes them, or CSV with a column "return", of which rows
// are made.
struct ReturnWindow {
  std::int64_t first = 0, rows = 500, ahead = 200;  // the window, and the rows behind it that are forecast
};
// Those rows, standardised by mean and deviation of the window's y; "scale" [1] f64 is that deviation. Throws
// Error (bad_file, invalid_argument) where there are too few rows, or they are of several series.
Fields read_returns(const TaskSettings& settings, const ReturnWindow& window);

}  // namespace superstep::workload
