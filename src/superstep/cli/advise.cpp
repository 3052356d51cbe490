// superstep advise WORKLOAD|MODEL.onnx: which machine, split, precision and batch for a goal, ranked, with
// reasons.
#include "superstep/lab/advise/advise.h"

#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/cli/advise/by_quality.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/input_type.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/advise/page.h"
#include "superstep/machine/ipu/kept_plans.h"

namespace superstep::cli {
namespace {

struct Arguments {
  lab::AdviseSettings settings;
  std::string mode = "train", goal = "throughput", at_most, input_type, page;
  std::vector<std::string> prices, powers;
  QualityChoice quality;
  bool all = false;
};

constexpr const char* footer =
    "Every machine is tried in the precisions that its users take, with micro-batches 1, 2, 4 ... as far as "
    "they fit and gain, "
    "recomputed or as a pipeline where it does not fit otherwise, and with replicas as far as --budget-units "
    "reaches. A training "
    "keeps its recipe's samples an update (--batch), so that it learns as well.\n"
    "Places are ranges where the 80 % intervals overlap.\n"
    "Examples:\n"
    "  superstep advise braggnn\n"
    "  superstep advise resnet50 --mode infer --for latency --at-most 5ms --samples-per-second 2000\n"
    "  superstep advise unet-256 --budget-units 16 --on gc200,a100-40gb --all\n"
    "  superstep advise model.onnx --mode infer --for energy --measure --out advice.html\n"
    "  superstep advise ptychonn-64 --for cost --price a100-80gb=2.5 --price gc200=1.2\n"
    "  superstep advise braggnn --for time-to-quality --quality study/quality-braggnn     by measured steps";

// "5ms", "200us", "1.5s", "0.005".
double seconds_from(const std::string& text) {
  struct Unit {
    const char* name;
    double seconds;
  };
  constexpr Unit units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}};
  for (const Unit& unit : units)
    if (text.ends_with(unit.name)) {
      const std::string number = text.substr(0, text.size() - std::string_view(unit.name).size());
      const auto value = finite_number(number);
      if (!value || *value <= 0) break;
      return *value * unit.seconds;
    }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no time", text), "--at-most",
              "write 5ms, 200us or 1.5s");
}

// "gc200=1.5".
std::map<std::string, double> numbers_by_machine(const std::vector<std::string>& assignments,
                                                 const char* option) {
  std::map<std::string, double> numbers;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    const auto number =
        equals == std::string::npos ? std::nullopt : finite_number(assignment.substr(equals + 1));
    if (!number || *number <= 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is no MACHINE=NUMBER above zero", assignment), option);
    numbers[machine::find_machine(assignment.substr(0, equals)).id()] = *number;
  }
  return numbers;
}

void advise(const Arguments& arguments) {
  lab::AdviseSettings settings = arguments.settings;
  settings.trains = arguments.mode == "train";
  settings.goal = lab::goal_from_name(arguments.goal);
  if (!arguments.at_most.empty()) settings.latency_limit = seconds_from(arguments.at_most);
  settings.input_bytes = input_bytes_of(arguments.input_type);
  settings.prices = numbers_by_machine(arguments.prices, "--price");
  settings.powers = numbers_by_machine(arguments.powers, "--power");
  settings.threads = thread_count();
  settings.model.batch = settings.trains ? settings.most_samples : 0;
  const record::HostLoad load;
  const machine::ipu::KeptPlans kept;
  if (arguments.quality.curve)
    return advise_by_quality(settings, *arguments.quality.curve, arguments.page, arguments.all);
  const lab::Advice advice = lab::advise(settings);
  if (!arguments.page.empty()) lab::write_page(advice, arguments.page);
  std::vector<record::Result> results = lab::results_of(advice);
  keep_results(results, load, false);
  if (common().quiet) return;
  fmt::print("{}", lab::text_of(advice, arguments.all));
  if (!arguments.page.empty()) fmt::print("page: {}\n", arguments.page);
  if (settings.trains && settings.goal == lab::Goal::time_to_quality)
    tell_how_to_measure(settings.model.workload);
}

void add_limits(CLI::App& command, const std::shared_ptr<Arguments>& a) {
  command.add_option("--for", a->goal, fmt::format("what counts: {}", join(lab::goal_names(), ", ")))
      ->type_name("GOAL")
      ->capture_default_str();
  command
      .add_option("--at-most", a->at_most, "the longest that a call or an update may take: 5ms, 200us, 1.5s")
      ->type_name("TIME");
  command
      .add_option("--samples-per-second", a->settings.rate_wanted, "at least so many, of all units together")
      ->type_name("N")
      ->check(positive());
  command.add_option("--budget-units", a->settings.units, "units of a machine that one model may have")
      ->type_name("N")
      ->check(whole_number_from(1, 4096))
      ->capture_default_str();
  command
      .add_option("--batch", a->settings.most_samples,
                  "samples of an update (default: the recipe's), or of a call at most (default: 1024)")
      ->type_name("N")
      ->check(whole_number_from(1, 1 << 20));
  command.add_option("--price", a->prices, "MACHINE=PRICE of a unit-hour, for --for cost; may be repeated")
      ->type_name("MACHINE=X")
      ->allow_extra_args(false);
  command
      .add_option("--power", a->powers,
                  "MACHINE=WATTS of a unit, in place of its data sheet's; may be repeated")
      ->type_name("MACHINE=W")
      ->allow_extra_args(false);
}

}  // namespace

void declare_advise(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command
      .add_option("workload", a->settings.model.workload,
                  "a workload (superstep list workloads) or a model file")
      ->required();
  command.add_option("--mode", a->mode, "train or infer")
      ->check(CLI::IsMember({"train", "infer"}))
      ->capture_default_str();
  add_limits(command, a);
  add_quality_option(command, a->quality);
  command.add_option("--on", a->settings.machines, "these machines or machine files alone (default: all)")
      ->type_name("MACHINE,...")
      ->delimiter(',');
  command
      .add_option("--precision", a->settings.precisions, "these alone: f32, tf32, f16, bf16, mixed, 16.16")
      ->type_name("NAME,...")
      ->delimiter(',');
  command
      .add_option("--stack", a->settings.stack,
                  "the software that drives them, as predict names it: pytorch-eager, tensorflow, ...")
      ->type_name("NAME");
  add_input_type_option(command, a->input_type);
  add_set_option(command, a->settings.model.model_options);
  add_bound_option(command, a->settings.model.bounds);
  add_operators_option(command);
  add_shape_option(command, a->settings.model.shapes);
  command.add_option("--loss", a->settings.model.loss,
                     "the loss by which a model file is trained: superstep train --help");
  command
      .add_option("--samples", a->settings.model.samples,
                  "training samples, for the goals that count a whole training")
      ->type_name("N")
      ->check(positive());
  command.add_flag("--measure", a->settings.measures,
                   "this computer beside them, some seconds a configuration");
  command.add_flag("--all", a->all, "every configuration that was tried");
  command.add_option("--out", a->page, "write a page: ranking, roofline, what a wait buys")
      ->type_name("FILE.html");
  command.footer(footer);
  command.callback([a, &command] {
    refuse_given(command, a->goal == "cost" ? "" : "is for --for cost", {"--price"});
    refuse_given(command, a->goal == "energy" ? "" : "is for --for energy", {"--power"});
    refuse_given(command,
                 a->goal == "cost" || a->goal == "time-to-quality"
                     ? ""
                     : "is for goals that count a whole training: cost, time-to-quality",
                 {"--samples"});
    find_quality(command, a->settings, a->mode, a->goal, a->quality);
    advise(*a);
  });
}

}  // namespace superstep::cli
