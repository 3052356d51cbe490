#include "superstep/lab/bench/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/lab/bench/self_check.h"

namespace superstep::lab {
namespace {

constexpr const char* drifted = "the machine drifted";
constexpr double notable_change = 0.02;  // what the protocol calls steady

record::Quantity* time_of(record::Result& result) {
  const auto found = std::ranges::find(result.quantities, "step_time", &record::Quantity::name);
  return found == result.quantities.end() ? nullptr : &*found;
}

}  // namespace

bool is_baseline(const record::Result& result) { return result.config.contains("repeats"); }

void mark_as_baseline(record::Result& again, const record::Result& first) {
  again.config["repeats"] = first.id;
  again.id = first.id + "-again";
  const record::Quantity* before = first.find("step_time");
  record::Quantity* now = time_of(again);
  if (!before || !now || before->value <= 0) return;
  const double change = now->value / before->value - 1;
  now->details["change"] = change;
  const bool same = intervals_meet(*before, *now) || std::abs(change) < notable_change;
  now->flags.push_back(fmt::format("{}: {:+.1f} % since its first measurement",
                                   same ? "the first again" : drifted, 100 * change));
}

std::string baseline_text(const std::vector<record::Result>& results) {
  std::string text;
  for (const record::Result& result : results) {
    const record::Quantity* time = result.find("step_time");
    if (!is_baseline(result) || !time) continue;
    for (const std::string& flag : time->flags)
      if (flag.starts_with(drifted))
        text += fmt::format("{}: {}; rows between are as uncertain\n", result.id, flag);
  }
  return text;
}

}  // namespace superstep::lab
