// What advice says on a terminal and in files of results.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/lab/advise/advise.h"
#include "superstep/lab/advise/reasons.h"

namespace superstep::lab {
namespace {

std::string place_of(const MachineAdvice& advice) {
  if (!advice.best_option()) return "-";
  if (advice.first_place == advice.last_place) return fmt::format("{}", advice.first_place);
  return fmt::format("{} to {}", advice.first_place, advice.last_place);
}

std::string batch_of(const machine::PredictSettings& settings) {
  std::string batch = fmt::format("{}", settings.micro_batch);
  if (settings.accumulate > 1) batch += fmt::format(" x {}", settings.accumulate);
  return batch;
}

std::vector<std::string> row_of(const Advice& advice, const MachineAdvice& one) {
  const Option* best = one.best_option();
  if (!best) return {"-", one.machine.id(), "-", "-", "-", "-", "-"};
  return {place_of(one),
          one.machine.id(),
          split_of(best->settings),
          best->settings.precision.name + (best->settings.recompute ? ", recomputed" : ""),
          batch_of(best->settings),
          amount_of(advice.goal, best->figure.value),
          interval_of(advice.goal, best->figure)};
}

// Machines that have a file or were asked for are all shown; of the others those that come out ahead.
constexpr std::size_t shown_of_sheets = 10;  // chosen

std::vector<const MachineAdvice*> shown(const Advice& advice) {
  std::vector<const MachineAdvice*> chosen;
  std::size_t of_sheets = 0;
  for (const MachineAdvice& one : advice.machines)
    if (!one.of_sheet || (one.best_option() && of_sheets++ < shown_of_sheets)) chosen.push_back(&one);
  return chosen;
}

std::string reasons_text(const Advice& advice) {
  std::string text;
  for (const MachineAdvice* each : shown(advice)) {
    const MachineAdvice& one = *each;
    text += fmt::format("  {:<12} {}\n", one.machine.id(), join(one.reasons, "; "));
    text +=
        fmt::format("  {:<12} operators: {}\n", "", join(coverage_words(one.coverage, one.machine), "; "));
    for (const Change& change : one.changes)
      text += fmt::format("  {:<12} would gain: {}, {:.2g} times ({})\n", "", change.what, change.gain,
                          change.note);
  }
  return text;
}

std::string option_table(const Advice& advice) {
  TextTable table(
      {"machine", "split", "precision", "micro-batch", "fits", name_of(advice.goal), "80 %", "bound by"});
  for (const MachineAdvice& one : advice.machines)
    for (const Option& option : one.options) {
      const bool shown = option.figure.known();
      table.add_row({one.machine.id(), split_of(option.settings),
                     option.settings.precision.name + (option.settings.recompute ? ", recomputed" : ""),
                     batch_of(option.settings), option.prediction.fits ? "yes" : "no",
                     shown ? amount_of(advice.goal, option.figure.value) : "-",
                     shown ? interval_of(advice.goal, option.figure) : "-",
                     option.prediction.fits ? bound_of(option) : "memory"});
    }
  return table.to_string();
}

std::string here_text(const Advice& advice) {
  std::string text;
  for (const Measured& measured : advice.here)
    text += fmt::format("  this computer, {}: {} (measured)\n", measured.what,
                        measured.figure.known()
                            ? fmt::format("{} ({}, 95 %)", amount_of(advice.goal, measured.figure.value),
                                          interval_of(advice.goal, measured.figure))
                            : format_seconds(measured.seconds) + " a call");
  return text;
}

std::string conditions_of(const Advice& advice) {
  const SearchSettings& search = advice.search;
  std::string text =
      fmt::format("{}, {}, for {}; at most {} unit{}", advice.model, advice.trains ? "trained" : "served",
                  name_of(advice.goal), search.units, search.units == 1 ? "" : "s");
  if (advice.trains) text += fmt::format(", {} samples an update", search.most_samples);
  if (search.latency_limit > 0)
    text += fmt::format(", a call within {}", format_seconds(search.latency_limit));
  if (search.rate_wanted > 0)
    text += fmt::format(", at least {}", format_si(search.rate_wanted, "samples/s"));
  if (!advice.stack.empty())
    text += fmt::format("; driven by {}: machines whose files have its numbers", advice.stack);
  return text;
}

nlohmann::json coverage_json(const MachineAdvice& one) {
  nlohmann::json found = nlohmann::json::array();
  for (const Coverage& each : one.coverage)
    found.push_back({{"stack", each.stack},
                     {"source", each.source},
                     {"kinds", each.kinds},
                     {"missing", each.missing},
                     {"untrained", each.untrained}});
  return found;
}

nlohmann::json config_of(const Advice& advice, const MachineAdvice& one, const Option& best) {
  nlohmann::json changes = nlohmann::json::array();
  for (const Change& change : one.changes)
    changes.push_back({{"what", change.what}, {"gain", change.gain}, {"note", change.note}});
  return {{"goal", name_of(advice.goal)},
          {"stack", advice.stack},
          {"precision", best.settings.precision.name},
          {"micro_batch", best.settings.micro_batch},
          {"accumulate", best.settings.accumulate},
          {"replicas", best.settings.replicas},
          {"pipeline", best.settings.pipeline},
          {"recompute", best.settings.recompute},
          {"units", best.prediction.units},
          {"first_place", one.first_place},
          {"last_place", one.last_place},
          {"within_limits", best.within_limits},
          {"bound_by", bound_of(best)},
          {"reasons", one.reasons},
          {"changes", changes},
          {"operators", coverage_json(one)},
          {"options_tried", one.options.size()},
          {"machine_file", one.machine.file()},
          {"law", best.prediction.by_law ? nlohmann::json(best.prediction.by_law->law) : nlohmann::json()},
          {"of_sheet", one.of_sheet},
          {"machine_digest", one.machine.digest()}};
}

}  // namespace

std::string interval_of(Goal goal, const Figure& figure) {
  const std::string high = amount_of(goal, figure.high);
  std::string low = amount_of(goal, figure.low);
  const auto unit_of = [](const std::string& text) {
    return text.substr(std::min(text.find(' '), text.size()));
  };
  if (unit_of(low) == unit_of(high)) low.resize(low.size() - unit_of(low).size());
  return fmt::format("{} to {}", low, high);
}

std::string amount_of(Goal goal, double value) {
  switch (goal) {
    case Goal::throughput: return format_si(value, "samples/s");
    case Goal::latency:
    case Goal::time_to_quality: return format_seconds(value);
    case Goal::energy: return format_si(value, "J");
    case Goal::cost: return fmt::format("{:.3g}", value);
  }
  return {};
}

std::string text_of(const Advice& advice, bool every_option) {
  std::string text = conditions_of(advice) + "\n\n";
  if (every_option) text += option_table(advice) + "\n";
  TextTable table({"place", "machine", "split", "precision", "micro-batch", name_of(advice.goal), "80 %"});
  const std::vector<const MachineAdvice*> rows = shown(advice);
  for (const MachineAdvice* one : rows) table.add_row(row_of(advice, *one));
  text += table.to_string();
  if (const std::size_t others = advice.machines.size() - rows.size(); others > 0)
    text += fmt::format(
        "and {} further machines of which a data sheet alone is known: --on NAME,... shows them, --json FILE "
        "has "
        "all\n",
        others);
  text += "\nwhy\n" + reasons_text(advice);
  if (!advice.here.empty()) text += "\n" + here_text(advice);
  text += fmt::format(
      "\n{} configurations predicted, none measured; \"1 to 3\": the 80 % intervals leave open which of "
      "these "
      "places it has.\n",
      advice.predictions);
  return text;
}

std::vector<record::Result> results_of(const Advice& advice) {
  std::vector<record::Result> results;
  for (const MachineAdvice& one : advice.machines) {
    record::Result result{
        .command = "advise", .workload = advice.model, .mode = advice.trains ? "train" : "infer"};
    result.id = fmt::format("{}-{}-{}", advice.model, result.mode, one.machine.id());
    result.machine = one.machine.id();
    result.config = {
        {"goal", name_of(advice.goal)}, {"reasons", one.reasons}, {"operators", coverage_json(one)}};
    if (const Option* best = one.best_option()) {
      result.units = best->prediction.units;
      result.config = config_of(advice, one, *best);
      result.quantities = record::to_quantities(best->prediction.metrics());
      Metric figure{.name = name_of(advice.goal),
                    .value = best->figure.value,
                    .unit = unit_of(advice.goal),
                    .how = How::predicted};
      figure.low = best->figure.low;
      figure.high = best->figure.high;
      result.quantities.push_back(record::to_quantity(figure));
    }
    results.push_back(std::move(result));
  }
  for (const Measured& measured : advice.here) {
    record::Result result{
        .command = "advise", .workload = advice.model, .mode = advice.trains ? "train" : "infer"};
    result.id = fmt::format("{}-here-{}", advice.model, measured.what);
    result.config = {{"goal", name_of(advice.goal)}, {"what", measured.what}};
    result.add("step_time", measured.seconds, "s");
    result.add("throughput", measured.samples / measured.seconds, "samples/s");
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace superstep::lab
