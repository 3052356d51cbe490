#include "superstep/lab/onnx_suite/suite.h"

#include <map>
#include <mutex>

#include "superstep/base/system/interrupt.h"
#include "superstep/base/thread_pool.h"

namespace superstep::lab {
namespace {

// The kind of a reason to skip: what stands before the place it happened at differs from case to case.
std::string kind_of(const std::string& reason) {
  const std::size_t colon = reason.rfind(": ");
  return colon == std::string::npos ? reason : reason.substr(colon + 2);
}

}  // namespace

std::vector<CaseResult> run_cases(const std::vector<std::filesystem::path>& cases, const CaseOptions& options,
                                  int threads, const std::function<void(const CaseResult&)>& done) {
  std::vector<CaseResult> results(cases.size());
  std::mutex mutex;
  ThreadPool pool(threads);
  pool.parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    results[i] = run_case(cases[i], options);
    const std::lock_guard lock(mutex);
    if (done) done(results[i]);
  });
  return results;
}

double SuiteCounts::share() const {
  return passed + failed == 0 ? 1 : static_cast<double>(passed) / (passed + failed);
}

SuiteCounts count(const std::vector<CaseResult>& results) {
  SuiteCounts counts;
  for (const CaseResult& result : results) {
    counts.passed += result.outcome == CaseOutcome::passed;
    counts.failed += result.outcome == CaseOutcome::failed;
    counts.skipped += result.outcome == CaseOutcome::skipped;
    if (result.outcome != CaseOutcome::passed) continue;
    counts.types_only += result.types_only;
    counts.folded_whole += result.folded_whole;
  }
  return counts;
}

TextTable failure_table(const std::vector<CaseResult>& results) {
  TextTable table({"failed", "on", "reason"});
  for (const CaseResult& result : results)
    if (result.outcome == CaseOutcome::failed) table.add_row({result.name, result.target, result.reason});
  return table;
}

TextTable skip_table(const std::vector<CaseResult>& results) {
  std::map<std::string, int> kinds;
  for (const CaseResult& result : results)
    if (result.outcome == CaseOutcome::skipped) ++kinds[kind_of(result.reason)];
  TextTable table({"skipped", "cases"});
  for (const auto& [kind, cases] : kinds) table.add_row({kind, std::to_string(cases)});
  return table;
}

}  // namespace superstep::lab
