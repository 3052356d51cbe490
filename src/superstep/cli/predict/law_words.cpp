#include "superstep/cli/predict/law_words.h"

#include "superstep/base/text.h"
#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {

void LawReport::add(const std::string& name, double value, double low, double high, const std::string& unit) {
  metrics_.push_back({.name = name,
                      .value = value,
                      .unit = unit,
                      .how = How::predicted,
                      .samples = {},
                      .low = low,
                      .high = high});
  say("{:<23}{} ({} to {}, 80 %)", name, format_si(value, unit), format_si(low, unit), format_si(high, unit));
}

void LawReport::add_rate(const std::string& name, double amount, const std::string& unit, double seconds) {
  const double value = amount / (seconds > 0 ? seconds : answer_.seconds);
  add(name, value, value * answer_.seconds / answer_.high, value * answer_.seconds / answer_.low, unit);
}

void LawReport::add_time(const std::string& name, double amount, double seconds) {
  const double value = (seconds > 0 ? seconds : answer_.seconds) / amount;
  add(name, value, value * answer_.low / answer_.seconds, value * answer_.high / answer_.seconds, "s");
}

void LawReport::finish(const std::string& workload, const machine::LawCall& call,
                       nlohmann::json config) const {
  say("ladder: at peak {}, roofline {}, by the law {}", format_seconds(call.peak_seconds),
      format_seconds(call.roofline_seconds), format_seconds(answer_.seconds));
  say("by the law of {} (machines/rates, docs/accuracy.md); interval of \"{}\", {} cells",
      call.call.kinds.front(), answer_.spread, answer_.cells);
  say("the machine: {}{}{}", sheet_.source, sheet_.checked ? "" : " (from memory, not checked at its source)",
      answer_.measured_machine ? "" : "; no such call on it was measured: its data sheet alone is known");
  config["machine"] = sheet_.facts.id;
  config["law"] = call.call.kinds.front();
  config["interval_of"] = answer_.spread;
  config["interval_cells"] = answer_.cells;
  config["measured_machine"] = answer_.measured_machine;
  config["facts_checked"] = sheet_.checked;
  config["coverage"] = 0.8;
  config["ladder"] = {
      {"peak", call.peak_seconds}, {"roofline", call.roofline_seconds}, {"full", answer_.seconds}};
  write_result(command_result("predict", workload, std::move(config), metrics_, sheet_.facts.id));
}

}  // namespace superstep::cli
