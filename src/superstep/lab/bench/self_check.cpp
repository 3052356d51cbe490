#include "superstep/lab/bench/self_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/lab/measure/clock.h"

namespace superstep::lab {
namespace {

std::string interval(const record::Quantity& quantity) {
  return fmt::format("{} [{}, {}]", format_seconds(quantity.value),
                     format_seconds(quantity.low.value_or(quantity.value)),
                     format_seconds(quantity.high.value_or(quantity.value)));
}

}  // namespace

bool intervals_meet(const record::Quantity& a, const record::Quantity& b) {
  return a.low.value_or(a.value) <= b.high.value_or(b.value) &&
         b.low.value_or(b.value) <= a.high.value_or(a.value);
}

SelfCheck compare_runs(const std::vector<record::Result>& first, const std::vector<record::Result>& second) {
  SelfCheck check;
  TextTable table({"result", "first run", "second run", "second/first", "intervals meet"});
  for (const record::Result& one : first) {
    const auto other = std::ranges::find(second, one.id, &record::Result::id);
    const record::Quantity* a = one.find("step_time");
    const record::Quantity* b = other == second.end() ? nullptr : other->find("step_time");
    if (!a || !b) continue;
    const bool agree = intervals_meet(*a, *b);
    ++check.rows;
    check.agree += agree ? 1 : 0;
    table.add_row({one.id, interval(*a), interval(*b), fmt::format("{:.3f}", b->value / a->value),
                   agree ? "yes" : "no"});
  }
  check.text = table.to_string();
  check.text += fmt::format("self-check: {} of {} rows agree within their intervals ({:.0f} %)\n",
                            check.agree, check.rows, check.rows ? 100.0 * check.agree / check.rows : 0.0);
  return check;
}

void pause_for(double seconds) {
  constexpr double step = 0.1;  // s: how soon Ctrl-C is heard
  Clock& clock = steady_clock();
  for (const double end = clock.seconds() + seconds; clock.seconds() < end;) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while waiting for the second run");
    clock.sleep_until(std::min(end, clock.seconds() + step));
  }
}

}  // namespace superstep::lab
