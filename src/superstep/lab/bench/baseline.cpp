#include "superstep/lab/bench/baseline.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/lab/bench/self_check.h"

namespace superstep::lab {
namespace {

constexpr const char* drifted = "the machine drifted";
constexpr double notable_change = 0.02;  // what the protocol calls steady

}  // namespace

bool is_baseline(const Result& result) { return result.config.contains("repeats"); }

void mark_as_baseline(Result& again, const Result& first) {
  again.config["repeats"] = first.id;
  again.id = first.id + "-again";
  const Quantity* before = first.find("step_time");
  if (!before || !again.find("step_time") || before->value <= 0) return;
  Quantity& now = again.quantities.front();
  const double change = now.value / before->value - 1;
  now.details["change"] = change;
  const bool same = intervals_meet(*before, now) || std::abs(change) < notable_change;
  now.flags.push_back(fmt::format("{}: {:+.1f} % since its first measurement",
                                  same ? "the first again" : drifted, 100 * change));
}

std::string baseline_text(const std::vector<Result>& results) {
  std::string text;
  for (const Result& result : results) {
    if (!is_baseline(result) || result.quantities.empty()) continue;
    for (const std::string& flag : result.quantities.front().flags)
      if (flag.starts_with(drifted))
        text += fmt::format("{}: {}; rows between are as uncertain\n", result.id, flag);
  }
  return text;
}

}  // namespace superstep::lab
