// The ONNX backend test suite, or any folder of such cases, on a target.
#pragma once

#include <functional>

#include "superstep/base/text.h"
#include "superstep/lab/onnx_suite/case.h"

namespace superstep::lab {

// Runs all cases, `threads` at a time. Results are in the order of `cases`. `done` is called after each, from
// the thread that ran it, one call at a time.
std::vector<CaseResult> run_cases(const std::vector<std::filesystem::path>& cases, const CaseOptions& options,
                                  int threads, const std::function<void(const CaseResult&)>& done = {});

struct SuiteCounts {
  int passed = 0, failed = 0, skipped = 0;
  int types_only = 0, folded_whole = 0;  // of those that passed
  double share() const;                  // passed of those not skipped; 1 when all were skipped
};
SuiteCounts count(const std::vector<CaseResult>& results);

// Failures with their reasons, and how many were skipped for each kind of reason.
TextTable failure_table(const std::vector<CaseResult>& results);
TextTable skip_table(const std::vector<CaseResult>& results);

}  // namespace superstep::lab
