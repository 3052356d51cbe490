#include "superstep/cli/study/quality.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/sweep/sweep.h"
#include "superstep/study/quality/report.h"

namespace superstep::cli {
namespace {

namespace fs = std::filesystem;

// "a100-40gb=1.5".
std::pair<std::string, double> price_from(const std::string& text) {
  const std::size_t equals = text.find('=');
  const double price = equals == std::string::npos ? 0 : std::strtod(text.c_str() + equals + 1, nullptr);
  if (price <= 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no MACHINE=PRICE above zero", text),
                "--price");
  return {text.substr(0, equals), price};
}

study::QualitySettings settings_of(const QualityArguments& arguments, const std::string& out) {
  if (arguments.workload.empty())
    throw Error(ErrorCode::invalid_argument, "needs a workload", "quality",
                "superstep study quality braggnn --until error_px_mean=0.3");
  if (arguments.until.empty())
    throw Error(ErrorCode::invalid_argument, "says which quality is to be reached", "--until",
                "--until METRIC=VALUE, as superstep train has it");
  study::QualitySettings settings{
      .workload = arguments.workload,
      .options = arguments.options,
      .until = run::parse_until(arguments.until),
      .batches = lab::counts_from(arguments.batches, "--batch"),
      .precisions = arguments.precisions,
      .seeds = arguments.seeds,
      .samples = arguments.samples,
      .epochs = arguments.epochs,
      .rule = study::rate_rule(arguments.rule),
      .machines = arguments.machines,
      .units = {},
      .prices = prices_of(arguments),
      .out = out.empty() ? fs::path("study") / ("quality-" + arguments.workload) : fs::path(out),
      .threads = thread_count()};
  for (const std::int64_t units : lab::counts_from(arguments.units, "--units"))
    settings.units.push_back(static_cast<int>(units));
  return settings;
}

}  // namespace

std::map<std::string, double> prices_of(const QualityArguments& arguments) {
  std::map<std::string, double> prices;
  for (const std::string& text : arguments.prices) {
    const auto [machine, price] = price_from(text);
    if (!prices.emplace(machine, price).second)
      throw Error(ErrorCode::invalid_argument, "is given two prices", machine,
                  "--price says one of a machine");
  }
  return prices;
}

void add_quality_options(CLI::App& command, const std::shared_ptr<QualityArguments>& a) {
  command.add_option("workload", a->workload, "quality: a workload of the zoo");
  command.add_option("--until", a->until, "quality: what is to be reached, as superstep train has it")
      ->type_name("METRIC=VALUE");
  command.add_option("--batch", a->batches, "quality: samples per step")
      ->type_name("N,A..B")
      ->capture_default_str();
  command.add_option("--precision", a->precisions, "quality: f32, bf16, f16")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  command.add_option("--seeds", a->seeds, "quality: trainings of each batch and precision")
      ->type_name("N")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--samples", a->samples, "quality: of the data (default: the recipe's)")
      ->type_name("N")
      ->check(whole_number_from(1, 1'000'000'000));
  command
      .add_option("--epochs", a->epochs,
                  "quality: at most, and the schedule's length (default: the recipe's)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--rate-rule", a->rule,
                  "quality: the learning rate from the recipe's batch on: linear, sqrt or none")
      ->check(CLI::IsMember({"linear", "sqrt", "none"}))
      ->capture_default_str();
  command.add_option("--on", a->machines, "quality: machines whose time, energy and price are predicted")
      ->delimiter(',')
      ->type_name("MACHINE,...")
      ->capture_default_str();
  command.add_option("--units", a->units, "quality: devices of each machine, which share a batch")
      ->type_name("N,A..B")
      ->capture_default_str();
  command
      .add_option("--price", a->prices,
                  "quality: of a unit-hour; else dollars of a unit, for the study's own; may be repeated")
      ->type_name("MACHINE=X")
      ->allow_extra_args(false);
  command.add_option("--set", a->options, "quality: name=value of an option of the model; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void refuse_quality_options(const CLI::App& command) {
  refuse_given(command, "is of study quality",
               {"workload", "--until", "--batch", "--precision", "--seeds", "--samples", "--epochs",
                "--rate-rule", "--on", "--units", "--set"});
}

study::QualityReport study_quality(const QualityArguments& arguments, const std::string& out) {
  const study::QualitySettings settings = settings_of(arguments, out);
  const StopNote note(
      fmt::format("go on with the same command: what is in {} is not done again", settings.out.string()));
  const study::QualityReport report = study::study_quality(settings);
  if (!common().quiet)
    fmt::print("{}the page is {}\n", study::text_of(report), (settings.out / "index.html").string());
  std::vector<Metric> metrics;
  for (const study::Reached& each : report.reached)
    if (each.reached > 0)
      metrics.push_back({.name = fmt::format("steps_{}_batch_{}", each.precision, each.batch),
                         .value = each.steps,
                         .unit = "",
                         .samples = {},
                         .low = each.steps_low,
                         .high = each.steps_high});
  for (const study::BatchLaw& law : report.laws)
    metrics.push_back(
        {.name = "critical_batch_" + law.precision, .value = law.critical_batch, .unit = "samples"});
  record::Result result = command_result("study", settings.workload,
                                         {{"study", "quality"}, {"until", report.goal}}, std::move(metrics));
  result.details["report"] = study::json_of(report);
  result.folder = settings.out.string();
  write_result(result);
  return report;
}

}  // namespace superstep::cli
