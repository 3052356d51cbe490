// superstep watch: training runs while they go on, in a terminal, on a page, and for others' programs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/page/page.h"
#include "superstep/record/member.h"
#include "superstep/run/trackers/run_names.h"
#include "superstep/run/trackers/tracker.h"

namespace superstep::cli {
namespace {

namespace fs = std::filesystem;
using run::LoggedEpoch;
using run::RunStatus;
using run::RunStory;

const std::string gradient_norm = "gradient_norm";  // of a run that logs it: of all parameters together

struct Arguments {
  std::vector<std::string> runs;
  std::string page, tensorboard, mlflow, csv;
  double every = 1;
  bool once = false;
};

// Of the folder runs/, where a training without --out leaves its run.
std::string newest_run() {
  std::string newest;
  fs::file_time_type time;
  std::error_code none;
  for (const fs::directory_entry& each : fs::directory_iterator("runs", none))
    if (const fs::path config = each.path() / "config.json"; fs::is_regular_file(config, none))
      if (const auto written = fs::last_write_time(config, none); newest.empty() || written > time)
        newest = each.path().string(), time = written;
  if (newest.empty())
    throw Error(ErrorCode::not_found, "there is no run here", "runs/",
                "name its folder: superstep watch RUN");
  return newest;
}

// "0000/run: running, epoch 3 of 20, 1:05 min left"; without an end where none is known.
std::string state_of(const RunStory& story) {
  const run::RunProgress progress = run::progress_of(story);
  const auto number = [&](double value) {
    return progress.in_steps ? format_count(value) : fmt::format("{:g}", value);
  };
  std::string text = fmt::format("{}: {}, {} {}", story.name, name_of(story.status),
                                 progress.in_steps ? "step" : "epoch", number(progress.done));
  if (!std::isnan(progress.end)) text += fmt::format(" of {}", number(progress.end));
  if (const double left = run::seconds_left(story); !std::isnan(left))
    text += fmt::format(", {} left", format_seconds(left));
  return text;
}

// Levels of a row of blocks, the last `width` values of it; a dot for what is no number.
std::string row_of_blocks(const RunStory& story, const std::string& name, std::size_t width) {
  constexpr const char* blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> values;
  for (const LoggedEpoch& epoch : story.epochs) values.push_back(epoch.value(name));
  if (values.size() > width) values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(width));
  const bool logarithmic = std::ranges::all_of(values, [](double value) { return !(value <= 0); });
  if (logarithmic)
    for (double& value : values) value = std::log(value);
  double low = INFINITY, high = -INFINITY;
  for (const double value : values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  std::string text;
  // By halves: between two numbers may be more than the greatest number is.
  const double span = high / 2 - low / 2;
  for (const double value : values)
    text +=
        std::isfinite(value) ? blocks[span > 0 ? std::lround(7 * ((value / 2 - low / 2) / span)) : 0] : "·";
  return text;
}

bool has_gradient_norms(const RunStory& story) {
  return !story.epochs.empty() && !std::isnan(story.epochs.back().value(gradient_norm));
}

TextTable table_of(const RunStory& story, std::size_t rows) {
  const bool norms = has_gradient_norms(story);
  std::vector<std::string> names = {
      "epoch", "loss", story.metric.empty() ? "metric" : story.metric, "learning rate", "samples/s", "time"};
  if (norms) names.emplace_back("gradient");
  TextTable table(names);
  const std::size_t first = story.epochs.size() > rows ? story.epochs.size() - rows : 0;
  const auto number = [](double value) {
    return std::isnan(value) ? std::string("-") : fmt::format("{:.5g}", value);
  };
  for (std::size_t i = first; i < story.epochs.size(); ++i) {
    const LoggedEpoch& epoch = story.epochs[i];
    std::vector<std::string> row = {
        fmt::format("{:g}", epoch.epoch),        number(epoch.value("loss")),
        number(epoch.value(story.metric)),       number(epoch.value("learning_rate")),
        format_count(epoch.value("throughput")), format_seconds(epoch.seconds)};
    if (norms) row.push_back(number(epoch.value(gradient_norm)));
    table.add_row(row);
  }
  return table;
}

void draw(const std::vector<RunStory>& stories) {
  for (const RunStory& story : stories) {
    fmt::print("{}\n", state_of(story));
    if (story.epochs.empty()) continue;
    fmt::print("loss   {}\n", row_of_blocks(story, "loss", 60));
    if (!story.metric.empty()) fmt::print("{:6} {}\n", story.metric, row_of_blocks(story, story.metric, 60));
    fmt::print("\n{}\n", table_of(story, stories.size() == 1 ? 12 : 4).to_string());
  }
  std::fflush(stdout);
}

// For logs and pipes: an epoch a line, each once.
void tell_new(const RunStory& story, std::size_t told, bool names_run) {
  for (std::size_t i = told; i < story.epochs.size(); ++i) {
    const LoggedEpoch& epoch = story.epochs[i];
    std::string line = names_run ? story.name + ": " : "";
    line += fmt::format("epoch {:g}, step {}", epoch.epoch, epoch.step);
    for (const auto& [name, value] : epoch.values)
      if (!run::is_of_parameter(name)) line += fmt::format(", {} {:.6g}", name, value);
    fmt::print("{}\n", line);
  }
  std::fflush(stdout);
}

page::Plot curves(const std::vector<RunStory>& stories, const std::string& title, const std::string& name) {
  page::Plot plot{.title = title, .x_label = "epoch", .y_label = name, .series = {}};
  for (const RunStory& story : stories) {
    page::Series series{.label = story.name, .x = {}, .y = {}};
    for (const LoggedEpoch& epoch : story.epochs)
      if (const double value = epoch.value(name); std::isfinite(value))
        series.x.push_back(epoch.epoch), series.y.push_back(value);
    if (!series.x.empty()) plot.series.push_back(std::move(series));
  }
  plot.log_y = name == "loss";
  return plot;
}

// A curve for each parameter of a run, logarithmic: which layers learn, and where gradients vanish or grow.
// Of many those whose gradients were the longest.
page::Plot parameter_curves(const RunStory& story) {
  constexpr std::size_t most = 12;  // that colors still tell apart
  page::Plot plot{
      .title = "Gradients of " + story.name, .x_label = "epoch", .y_label = "length", .series = {}};
  std::map<std::string, page::Series> found;
  for (const LoggedEpoch& epoch : story.epochs)
    for (const auto& [name, value] : epoch.values) {
      if (!run::is_of_parameter(name) || !(value > 0) || !std::isfinite(value)) continue;
      page::Series& series = found[name];
      series.label = name.substr(name.find('/') + 1);
      series.x.push_back(epoch.epoch), series.y.push_back(value);
    }
  for (auto& [name, series] : found) plot.series.push_back(std::move(series));
  std::ranges::stable_sort(plot.series, std::ranges::greater(),
                           [](const page::Series& series) { return series.y.back(); });
  if (plot.series.size() > most) {
    plot.title += fmt::format(" (the longest {} of {})", most, plot.series.size());
    plot.series.resize(most);
  }
  plot.log_y = true;
  return plot;
}

void write_page(const std::string& file, const std::vector<RunStory>& stories, int reload_seconds) {
  const bool going =
      std::ranges::any_of(stories, [](const RunStory& s) { return s.status == RunStatus::running; });
  page::Page page(stories.size() == 1 ? stories[0].name : "Training runs");
  if (going) page.reloaded_every(reload_seconds);
  for (const RunStory& story : stories) page.paragraph(state_of(story));
  page.begin_row();
  page.plot(curves(stories, "Loss", "loss"));
  std::vector<std::string> drawn;
  for (const RunStory& story : stories)
    if (!story.metric.empty() && std::ranges::find(drawn, story.metric) == drawn.end()) {
      drawn.push_back(story.metric);
      page.plot(curves(stories, "Validation", story.metric));
    }
  page.plot(curves(stories, "Learning rate", "learning_rate"));
  page.plot(curves(stories, "Throughput, samples/s", "throughput"));
  if (std::ranges::any_of(stories, has_gradient_norms)) page.plot(curves(stories, "Gradient", gradient_norm));
  for (const RunStory& story : stories)
    if (has_gradient_norms(story)) page.plot(parameter_curves(story));
  page.end_row();
  page.write(file);
}

// What is written for others, of each run; with several runs a folder or a file of each.
std::vector<std::vector<std::unique_ptr<run::Tracker>>> trackers_of(const Arguments& arguments,
                                                                    const std::vector<std::string>& names) {
  std::vector<std::vector<std::unique_ptr<run::Tracker>>> all;
  for (const std::string& name : names) {
    auto& trackers = all.emplace_back();
    if (!arguments.tensorboard.empty())
      trackers.push_back(run::tensorboard_tracker(fs::path(arguments.tensorboard) / name));
    if (!arguments.mlflow.empty()) trackers.push_back(run::mlflow_tracker(arguments.mlflow));
    if (!arguments.csv.empty()) trackers.push_back(run::csv_tracker(arguments.csv));
  }
  return all;
}

nlohmann::json as_json(const std::vector<RunStory>& stories) {
  nlohmann::json runs = nlohmann::json::array();
  for (const RunStory& story : stories) {
    nlohmann::json epochs = nlohmann::json::array();
    for (const LoggedEpoch& epoch : story.epochs) {
      nlohmann::json line{{"epoch", epoch.epoch}, {"step", epoch.step}, {"seconds", epoch.seconds}};
      for (const auto& [name, value] : epoch.values) line[name] = value;
      epochs.push_back(std::move(line));
    }
    runs.push_back(
        {{"run", story.folder.string()}, {"status", name_of(story.status)}, {"epochs", std::move(epochs)}});
  }
  return runs;
}

void watch(Arguments arguments) {
  if (arguments.runs.empty()) arguments.runs.push_back(newest_run());
  const std::vector<fs::path> folders =
      run::each_once(std::vector<fs::path>(arguments.runs.begin(), arguments.runs.end()));
  const std::vector<std::string> names = run::names_of(folders);
  if (!arguments.csv.empty() && folders.size() > 1)
    throw Error(ErrorCode::invalid_argument, "is a table of one run", "--csv",
                "watch one run, or use --json");
  const auto trackers = trackers_of(arguments, names);
  const bool terminal = ::isatty(1) == 1 && !arguments.once;
  std::vector<std::size_t> told(folders.size());
  std::vector<RunStory> stories;
  for (bool going = true; going;) {
    stories.clear();
    for (std::size_t i = 0; i < folders.size(); ++i) stories.push_back(run::read_story(folders[i], names[i]));
    going = !arguments.once &&
            std::ranges::any_of(stories, [](const RunStory& s) { return s.status == RunStatus::running; });
    for (std::size_t i = 0; i < stories.size(); ++i) {
      for (const auto& tracker : trackers[i]) tracker->write(stories[i]);
      if (!terminal && !arguments.once && !common().quiet) tell_new(stories[i], told[i], stories.size() > 1);
      told[i] = std::max(told[i], stories[i].epochs.size());
    }
    if (!arguments.page.empty())
      write_page(arguments.page, stories, std::max(1, static_cast<int>(arguments.every)));
    if (terminal && !common().quiet) fmt::print("\x1b[H\x1b[2J");
    if ((terminal || arguments.once || !going) && !common().quiet) draw(stories);
    // In small pieces: who asks to stop is heard at once.
    for (double waited = 0; going && waited < arguments.every && !interrupted(); waited += 0.05)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (interrupted()) break;  // the run goes on: only the looking ends
  }
  nlohmann::json config{{"runs", as_json(stories)}};
  write_result(
      command_result("watch", record::text_member(stories.front().config, "workload", ""), config, {}));
}

}  // namespace

void declare_watch(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("runs", arguments->runs, "folders of runs (default: the newest of runs/)")
      ->type_name("RUN ...");
  command
      .add_option("--page", arguments->page,
                  "write a page with the curves, which reloads itself while a run goes on")
      ->type_name("FILE");
  command
      .add_option("--tensorboard", arguments->tensorboard,
                  "write events for TensorBoard: tensorboard --logdir DIR")
      ->type_name("DIR");
  command
      .add_option("--mlflow", arguments->mlflow,
                  "write the run for MLflow: mlflow ui --backend-store-uri DIR")
      ->type_name("DIR");
  command.add_option("--csv", arguments->csv, "write a table, a row per epoch")->type_name("FILE");
  command.add_option("--every", arguments->every, "seconds between looks")
      ->type_name("S")
      ->check(number_from(0.1, 3600))
      ->capture_default_str();
  command.add_flag("--once", arguments->once, "look once and end, though a run goes on");
  command.footer(
      "Examples:\n"
      "  superstep watch                                 the newest run here, until it ends; Ctrl-C ends the "
      "looking alone\n"
      "  superstep watch run/ --page run.html\n"
      "  superstep watch lr1/ lr2/ --once                 two runs side by side\n"
      "  superstep watch run/ --tensorboard logs --quiet  in another terminal: tensorboard --logdir logs\n"
      "  superstep watch run/ --once --csv run.csv");
  command.callback([arguments] { watch(*arguments); });
}

}  // namespace superstep::cli
