// The open constants of stacks (machine/stack.h), fitted over measured rows of applications, and what the fit
// is worth on workloads and machines that it has not seen.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "superstep/lab/validate/table.h"

namespace superstep::lab {

struct StackFit {
  struct Value {
    std::string stack, name, unit;
    double before = 0, after = 0, low = 0, high = 0;
  };
  struct Errors {
    std::string left_out;  // a workload or a machine; "none"
    std::size_t rows = 0;
    double median = 0, p90 = 0;  // of |error|
    double half_width = 0;       // of the logarithm: holds 80 % of these rows
  };
  std::vector<Value> constants;
  std::size_t rows = 0;
  Errors before, fitted;          // all rows, with the constants of the files and with the fitted ones
  std::vector<Errors> workloads;  // each fitted without it and judged on it; the last one is all of them
  std::vector<Errors> machines;   // the same
};

// Rows of throughput on machines whose stacks have open constants. The mean of the absolute log errors is
// made least by moving one constant after the other, `rounds` times over all of them.
StackFit fit_stacks(const PublishedTable& table, int rounds);

}  // namespace superstep::lab
