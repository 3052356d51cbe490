// superstep search WORKLOAD|FILE: options of a training, searched by successive halving.
#include "superstep/study/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/call/config_file.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/cli/train/declare.h"
#include "superstep/run/model.h"
#include "superstep/run/quality.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/user/user_model.h"

namespace superstep::cli {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> varied;
  std::string until, metric, out;
  std::int64_t trials = 40;
  double minutes = 0, epochs = 0;
  int least_epochs = 1, keep_one_in = 3;
};

// Options of superstep train that a search has itself, or that are of one run.
constexpr auto not_of_trials = std::to_array<const char*>(
    {"--set", "--until", "--out", "--epochs", "--no-out", "--resume", "--steps", "--stop-after", "--folds",
     "--mllog", "--config", "--dry-run", "--explain", "--tune", "--checkpoint-seconds"});
// And those that the search adds.
constexpr auto own_options = std::to_array<std::string_view>(
    {"--set", "--until", "--out", "--epochs", "--metric", "--trials", "--minutes", "--least-epochs",
     "--keep-one-in", "--json", "--quiet", "--progress", "--threads", "--private", "--help", "workload"});

constexpr const char* examples =
    "Examples:\n"
    "  superstep search braggnn --set learning-rate=1e-4..1e-2:log --set batch=16,32,64 --trials 40 --until "
    "error_px_mean=0.3\n"
    "  superstep search model.onnx --data pairs.h5 --loss mse --set learning-rate=1e-5..1e-2:log --set "
    "optimizer=adam,lamb --minutes 60\n"
    "  mpirun -n 4 superstep search braggnn --set batch=16..256:log --threads 1 --out tuned     four at a "
    "time\n"
    "  superstep train --config tuned/best.toml --out run/                    the best one again\n"
    "A call that was stopped, or killed, is given again and goes on. Several processes (ranks, tasks of a "
    "Slurm array)\n"
    "that are given the same --out share the trials in its search.db, which Optuna reads too.";

// Options whose values cannot be held against one another, and why.
struct NotSearched {
  std::string_view why;
  std::vector<std::string_view> options;
};
const std::vector<NotSearched>& not_searched() {
  static const std::vector<NotSearched> all{
      {"says by what, or on which samples, trials are judged: it is the same for all",
       {"--data", "--validation", "--validate", "--samples", "--metrics", "--scale", "--offset", "--crop",
        "--skip-broken", "--allow-nan", "--tokenizer"}},
      {"decides about the computer, not about what is learned",
       {"--data-memory", "--data-threads", "--memory-limit", "--exchange", "--operators"}},
      {"is of several ranks or devices, and a trial is trained by one process",
       {"--batch-norm-span", "--shard"}}};
  return all;
}

// Its options alone: what superstep train would say of the words.
class TrainCall {
 public:
  explicit TrainCall(std::vector<std::string> words) : settings_(declare_training(app_)) {
    app_.name("train");
    app_.callback([] {});
    std::erase(words, "train");
    std::ranges::reverse(words);
    app_.parse(std::move(words));
  }
  std::string config() const { return config_text(app_, {"--out"}); }
  run::TrainSettings settings() const { return settings_(); }

 private:
  CLI::App app_;
  std::function<run::TrainSettings()> settings_;
};

std::string word_of(const study::Parameter& parameter, const std::string& value) {
  return parameter.of_model ? fmt::format("--set={}={}", parameter.name, value)
                            : fmt::format("--{}={}", parameter.name, value);
}

void refuse_value(const study::Parameter& parameter, const std::string& value, const std::string& workload) {
  try {
    const TrainCall call({"train", workload, word_of(parameter, value)});
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", value, error.what()),
                "--set " + parameter.name, "superstep train --help says what it takes");
  }
}

std::vector<std::string> names_of(const std::vector<OptionSpec>& options) {
  std::vector<std::string> names;
  for (const OptionSpec& option : options) names.push_back(option.name);
  return names;
}

// Empty: it may be.
std::string_view why_not_searched(std::string_view option) {
  for (const NotSearched& kind : not_searched())
    if (std::ranges::find(kind.options, option) != kind.options.end()) return kind.why;
  return {};
}

// An option of superstep train, else one of the model.
void place(study::Parameter& parameter, const CLI::App& command, const std::string& workload) {
  const std::string option = "--" + parameter.name;
  const bool own = std::ranges::find(own_options, std::string_view(option)) != own_options.end();
  if (!own && command.get_option_no_throw(option)) {
    if (const std::string_view why = why_not_searched(option); !why.empty())
      throw Error(ErrorCode::invalid_argument, std::string(why), "--set " + parameter.name,
                  fmt::format("leave it away, or give {} for all trials", option));
    for (const std::string& value : parameter.extremes()) refuse_value(parameter, value, workload);
    return;
  }
  std::vector<std::string> known;
  if (!run::is_model_file(workload)) known = names_of(workload::find_workload(workload).options);
  parameter.of_model = std::ranges::find(known, parameter.name) != known.end();
  if (parameter.of_model) return;
  for (const CLI::Option* each : command.get_options()) {
    if (each->get_lnames().empty()) continue;
    const std::string name = "--" + each->get_lnames().front();
    if (std::ranges::find(own_options, name) == own_options.end() && why_not_searched(name).empty())
      known.push_back(name.substr(2));
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("'{}' is no option of superstep train that a search may vary, and none of the model",
                  parameter.name),
      "--set", unknown_name_hint(parameter.name, known));
}

std::vector<study::Parameter> parameters_of(const Arguments& arguments, const CLI::App& command,
                                            const std::string& workload) {
  std::vector<study::Parameter> parameters;
  for (const std::string& text : arguments.varied) {
    parameters.push_back(study::parse_parameter(text));
    study::Parameter& parameter = parameters.back();
    place(parameter, command, workload);
    const CLI::Option* const option =
        parameter.of_model ? nullptr : command.get_option_no_throw("--" + parameter.name);
    const auto same = [&](const study::Parameter& other) { return other.name == parameter.name; };
    if (std::ranges::count_if(parameters, same) > 1 || (option && option->count() > 0))
      throw Error(ErrorCode::invalid_argument, "is given twice", parameter.name, "leave one of them away");
  }
  if (parameters.empty())
    throw Error(ErrorCode::invalid_argument, "says what is searched", "--set",
                "--set learning-rate=1e-4..1e-2:log, --set batch=16,32,64");
  return parameters;
}

// What all trials have, as words of superstep train.
std::vector<std::string> base_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (std::ranges::find(own_options, std::string_view(name)) != own_options.end()) continue;
    const bool flag = option->get_items_expected_max() == 0;
    if (flag) words.push_back(name);
    for (const std::string& value : flag ? std::vector<std::string>() : option->results())
      words.push_back(name + "=" + value);
  }
  return words;
}

std::vector<std::string> given(const CLI::App& command, const char* option) {
  const CLI::Option* const found = command.get_option_no_throw(option);
  return found && found->count() > 0 ? found->results() : std::vector<std::string>();
}

std::string first_or(const std::vector<std::string>& words, const std::string& otherwise) {
  return words.empty() ? otherwise : words.front();
}

// A trial's model, for its metrics and the epochs of its recipe.
run::Model model_of(std::vector<std::string> words) {
  return run::Model(TrainCall(std::move(words)).settings());
}

// That trials are judged by.
std::string metric_of(const Arguments& arguments, const run::Model& model) {
  if (!arguments.until.empty()) {
    const run::Until until = run::parse_until(arguments.until);
    run::check_until(until, model.workload());
    if (!arguments.metric.empty() && arguments.metric != until.metric)
      throw Error(ErrorCode::invalid_argument, "is another metric than that of --until", "--metric",
                  "leave one of them away");
    return until.metric;
  }
  if (!arguments.metric.empty()) return arguments.metric;
  if (model.workload().metrics.empty())
    throw Error(ErrorCode::invalid_argument, "its training says no quality that trials could be judged by",
                model.workload().name);
  return model.workload().metrics.front().name;
}

// The words of a trial that has the first of each parameter's extremes, but for one.
std::vector<std::string> words_with(const study::SearchSettings& settings, std::size_t varied,
                                    const std::string& value) {
  std::vector<std::string> words{"train", settings.workload};
  words.insert(words.end(), settings.base.begin(), settings.base.end());
  for (std::size_t i = 0; i < settings.parameters.size(); ++i)
    words.push_back(
        word_of(settings.parameters[i], i == varied ? value : settings.parameters[i].extremes().front()));
  return words;
}

// What no model can be made of, and what is judged by other metrics than the rest.
void refuse_models(const study::SearchSettings& settings) {
  for (std::size_t i = 0; i < settings.parameters.size(); ++i)
    for (const std::string& value : settings.parameters[i].extremes()) {
      const study::Parameter& parameter = settings.parameters[i];
      try {
        const run::Model model = model_of(words_with(settings, i, value));
        if (parameter.of_model) model.as_described()(1);
        if (run::higher_is_better(model.workload(), settings.metric) == settings.higher_is_better) continue;
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", value, error.what()), "--set " + parameter.name,
                    "what a trial could not have is not searched");
      }
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} is better the other way there", value, settings.metric),
                  "--set " + parameter.name);
    }
}

study::SearchSettings settings_of(const Arguments& arguments, const CLI::App& command) {
  const std::string workload = first_or(given(command, "workload"), "");
  study::SearchSettings settings{.workload = workload,
                                 .base = base_of(command),
                                 .parameters = parameters_of(arguments, command, workload),
                                 .trials = arguments.trials,
                                 .minutes = arguments.minutes,
                                 .until = {},
                                 .metric = {},
                                 .epochs = arguments.epochs,
                                 .halving = {},
                                 .out = arguments.out.empty()
                                            ? fs::path("search-" + fs::path(workload).stem().string())
                                            : fs::path(arguments.out),
                                 .threads = thread_count(),
                                 .config_of = [](const auto& words) { return TrainCall(words).config(); }};
  const run::Model model = model_of(words_with(settings, 0, settings.parameters.front().extremes().front()));
  if (settings.epochs <= 0) settings.epochs = model.settings().epochs;
  settings.metric = metric_of(arguments, model);
  if (!arguments.until.empty()) settings.until = run::parse_until(arguments.until);
  settings.higher_is_better = run::higher_is_better(model.workload(), settings.metric);
  refuse_models(settings);
  settings.halving = study::halving_of(settings.epochs, arguments.least_epochs, arguments.keep_one_in);
  const std::vector<std::string> seed = given(command, "--seed");
  if (!seed.empty()) settings.seed = std::strtoull(seed.front().c_str(), nullptr, 10);
  return settings;
}

void run_search(const Arguments& arguments, const CLI::App& command) {
  const bool first = run::launched_rank() == 0;
  const study::SearchSettings settings = settings_of(arguments, command);
  run::leave_ranks();  // a trial is trained by a process of its own, which is no rank of this one's run
  const StopNote note(
      fmt::format("go on with the same command: what is in {} is not done again", settings.out.string()));
  const study::SearchReport report = study::search(settings);
  if (!first) return;
  if (!common().quiet)
    fmt::print("{}the page is {}\n", study::text_of(report), (settings.out / "index.html").string());
  std::vector<Metric> metrics{
      {.name = "trials", .value = static_cast<double>(report.trials.size()), .unit = "", .samples = {}}};
  if (report.best)
    metrics.push_back({.name = settings.metric,
                       .value = report.trials[*report.best].qualities.back(),
                       .unit = "",
                       .samples = {}});
  record::Result result =
      command_result("search", settings.workload, {{"options", settings.base}}, std::move(metrics));
  result.details["report"] = study::json_of(report);
  result.folder = settings.out.string();
  write_result(result);
  report.require_best();
}

void take_own_options(CLI::App& command, Arguments& a) {
  for (const char* const option : not_of_trials)
    if (CLI::Option* const found = command.get_option_no_throw(option)) command.remove_option(found);
  command
      .add_option("--set", a.varied,
                  "option of superstep train, or of the model, and what is tried; may be repeated")
      ->type_name("NAME=LOW..HIGH[:log]|NAME=A,B")
      ->allow_extra_args(false);
  command.add_option("--trials", a.trials, "how many are drawn")
      ->type_name("N")
      ->check(whole_number_from(1, 100'000))
      ->capture_default_str();
  command.add_option("--until", a.until, "end when a trial reaches this, as superstep train has it")
      ->type_name("METRIC=VALUE");
  command.add_option("--minutes", a.minutes, "end this call after so long; the same call goes on")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--metric", a.metric,
                  "quality that trials are judged by (default: that of --until, or the first)")
      ->type_name("METRIC");
  command
      .add_option("--epochs", a.epochs,
                  "passes over the data of a trial that is trained to the end (default: the recipe's)")
      ->type_name("N")
      ->check(positive());
  command.add_option("--least-epochs", a.least_epochs, "epochs before a trial is cut short")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--keep-one-in", a.keep_one_in,
                  "trials that go on to so many times as many epochs; 1: all are trained to the end")
      ->type_name("N")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      .add_option("--out", a.out,
                  "folder of the search (default: search-NAME); one that was stopped goes on there")
      ->type_name("DIR");
}

}  // namespace

void declare_search(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  declare_training(command);
  take_own_options(command, *arguments);
  command.footer(examples);
  command.callback([arguments, &command] { run_search(*arguments, command); });
}

}  // namespace superstep::cli
