#include "superstep/cli/train/rehearsal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/explain.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/measure/energy.h"
#include "superstep/run/train/train_observer.h"

namespace superstep::cli {
namespace {

// Reads the energy counters around the steps of a rehearsal.
class Wattmeter : public run::TrainObserver {
 public:
  void epoch_begun(std::int64_t) override {
    meter_.sample();
    watch_ = Stopwatch();
  }
  void epoch_ended(std::int64_t, double) override {
    meter_.sample();
    seconds_ = watch_.seconds();
  }
  // Watts while it trained, of all packages and all that runs on them; nothing where no counter says it.
  std::optional<double> power() const {
    return meter_.available() && seconds_ > 0 ? std::optional(meter_.joules() / seconds_) : std::nullopt;
  }
  const std::string& why_not() const { return meter_.reason(); }

 private:
  lab::EnergyMeter meter_;
  Stopwatch watch_;
  double seconds_ = 0;
};

const Metric& metric_of(const run::TrainReport& report, std::string_view name) {
  return *std::ranges::find(report.metrics, name, &Metric::name);
}

// "1:43 min (1:38 min to 2:02 min)".
std::string in_words(const Metric& seconds) {
  const std::string value = format_seconds(seconds.value);
  if (!seconds.low) return value;
  return fmt::format("{} ({} to {})", value, format_seconds(*seconds.low), format_seconds(*seconds.high));
}

std::string table_of(const run::TrainReport& report, const std::string& energy) {
  TextTable table({"what", "expected (by a tenth and nine tenths of the steps)"});
  table.add_row(
      {"training", fmt::format("{}, {} steps of {}", in_words(metric_of(report, "expected_training_time")),
                               format_count(static_cast<double>(report.steps)),
                               format_seconds(metric_of(report, "step_time").value))});
  table.add_row({"validation", in_words(metric_of(report, "expected_validation_time"))});
  table.add_row({"in all", in_words(metric_of(report, "expected_time"))});
  table.add_row({"memory of the plan", format_bytes(static_cast<double>(report.plan.bytes_in_all()))});
  table.add_row({"energy", energy});
  return table.to_string();
}

// Joules by the power while it trained.
Metric energy_of(const Metric& time, double power) {
  return {.name = "expected_energy",
          .value = power * time.value,
          .unit = "J",
          .how = How::predicted,
          .samples = {},
          .low = power * *time.low,
          .high = power * *time.high};
}

}  // namespace

void rehearse(const run::TrainSettings& settings, run::TrainOptions options) {
  constexpr double seconds = 3;  // of steps (chosen): enough for a median, short enough to be asked for
  Wattmeter wattmeter;
  options.observer = &wattmeter;
  options.rehearsal_seconds = seconds;
  run::TrainReport report = run::train(settings, options);
  std::string energy = "not known: " + wattmeter.why_not();
  if (const auto power = wattmeter.power()) {
    const Metric joules = energy_of(metric_of(report, "expected_time"), *power);
    energy = fmt::format("{:.3g} kJ", joules.value / 1e3);
    report.metrics.push_back(joules);
  }
  if (!common().quiet)
    fmt::print(
        "{}: {:.4g} epochs, batch {} in micro-batches of {}, {}\nrecipe {}\n{}"
        "a dry run: nothing was kept; the times are of this machine as busy as it is now{}\n",
        settings.workload, report.epochs, report.plan.batch, report.plan.micro_batch, workers_of(report.plan),
        report.recipe, table_of(report, energy), settings.until ? "; --until may end it earlier" : "");
  nlohmann::json config = run::to_json(settings);
  config["dry_run"] = true;
  record::Result result =
      command_result("train", settings.workload, std::move(config), report.metrics, settings.target);
  result.mode = "train";
  write_result(std::move(result));
}

}  // namespace superstep::cli
