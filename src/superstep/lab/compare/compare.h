// Two sets of results, row by row: ratios with intervals, and which of them are beyond the noise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

enum class Verdict {
  same,     // the interval of the ratio holds 1
  better,   // beyond the noise
  worse,    // beyond the noise
  unknown,  // one of the two is a single value: there is nothing to judge noise by
};
const char* name_of(Verdict verdict);

struct ComparedRow {
  std::string result, metric, unit;         // id of the result
  double before = 0, after = 0, ratio = 0;  // after / before
  std::optional<double> low, high;          // of the ratio: a bootstrap of both medians, 95 %
  Verdict verdict = Verdict::unknown;
  std::vector<std::string> differences;  // of the two configurations: "threads 1 -> 2"
};

struct Comparison {
  std::vector<ComparedRow> rows;
  std::vector<std::string> only_before, only_after;  // ids without a partner
};

struct CompareOptions {
  std::vector<std::string> metrics;  // empty: times, rates and latencies that both have
  int resamples = 2000;
  std::uint64_t seed = 1;
};

// Results are matched by id; two sets of one result each are matched whatever their ids.
Comparison compare(const std::vector<record::Result>& before, const std::vector<record::Result>& after,
                   const CompareOptions& options = {});

// Is a larger value of this metric better? Times, latencies, losses and errors: no.
bool higher_is_better(const std::string& metric, const std::string& unit);

std::string comparison_table(const Comparison& comparison);

}  // namespace superstep::lab
