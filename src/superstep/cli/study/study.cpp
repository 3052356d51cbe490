// superstep study NAME|FILE.toml: a paper's table or figure, measured, predicted and published side by side.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/cli/study/quality.h"
#include "superstep/study/allocation/allocation.h"
#include "superstep/study/run.h"

namespace superstep::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string what = "list", out, report;
  double minutes = 0, training_samples = 0;
  int trainings = 1;
  bool print = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep study list                                every study: paper, place, what it shows, how "
    "long\n"
    "  superstep study emani-table2                        writes study/emani-table2/index.html\n"
    "  superstep study emani-table2 --minutes 20           deeper; what is measured well enough is kept\n"
    "  superstep study all --minutes 60                    all of them; a call that was stopped goes on\n"
    "  superstep study emani-table2 --print > my.toml      a study of your own begins with another's file\n"
    "  superstep study my.toml --out study/mine\n"
    "  superstep study emani-applications --report allocation --trainings 20    for a request for computing "
    "time\n"
    "  superstep study quality braggnn --until error_px_mean=0.5 --batch 32..256 --precision f32,bf16 "
    "--samples 4000\n"
    "Figures say where they are from: published (paper and place), predicted (an interval that holds 80 %),\n"
    "measured on this computer (95 %), or executed on the machine model.";

// What a study does on this computer: "bench, train".
std::string done_here(const study::Study& each) {
  std::vector<std::string> words;
  for (const study::Measure& measure : each.measures)
    if (measure.way != study::Way::nothing && std::ranges::find(words, name_of(measure.way)) == words.end())
      words.emplace_back(name_of(measure.way));
  if (!each.executions.empty()) words.emplace_back("engine");
  return words.empty() ? "-" : join(words, ", ");
}

// How many of a study's cells are published, predicted, measured here and executed on the machine model.
struct Scope {
  std::size_t cells = 0, published = 0, predicted = 0, measured = 0, executed = 0;
};

Scope scope_of(const study::Study& each) {
  const study::Cells cells = study::cells_of(each);
  constexpr int processors = 2;  // of ranks: whoever has one measures no exchange
  const study::Plan plan = study::plan_of(each, cells, processors);
  const auto planned = [](const std::vector<study::Recipe>& recipes) {
    return static_cast<std::size_t>(
        std::ranges::count_if(recipes, [](const study::Recipe& recipe) { return !recipe.jobs.empty(); }));
  };
  Scope scope{
      .cells = cells.list.size(), .measured = planned(plan.measured), .executed = planned(plan.executed)};
  for (std::size_t i = 0; i < cells.list.size(); ++i) {
    const study::Cell& cell = cells.list[i];
    // A machine's time to a quality rests on measured steps, and is predicted.
    if (!plan.measured[i].jobs.empty() && cells.text(cell, "metric") == "time_to_quality" &&
        cells.text(cell, "machine") != "cpu")
      --scope.measured;
    scope.published += cell.published ? 1 : 0;
    scope.predicted += study::why_not_predicted(cells, cell).empty() ? 1 : 0;
  }
  return scope;
}

void list_studies() {
  TextTable table({"study", "paper", "place", "what it shows", "done here", "minutes"});
  nlohmann::json list = nlohmann::json::array();
  for (const study::Study& each : study::studies()) {
    const Scope scope = scope_of(each);
    table.add_row(
        {each.name, each.paper, each.place, each.title, done_here(each), fmt::format("{:g}", each.minutes)});
    list.push_back({{"name", each.name},
                    {"paper", each.paper},
                    {"place", each.place},
                    {"title", each.title},
                    {"shows", each.shows},
                    {"done_here", done_here(each)},
                    {"cells", scope.cells},
                    {"published", scope.published},
                    {"predicted", scope.predicted},
                    {"measured", scope.measured},
                    {"executed", scope.executed},
                    {"unpublished", each.unpublished},
                    {"minutes", each.minutes}});
  }
  if (!common().quiet) fmt::print("{}", table.to_string());
  write_result(command_result(
      "study", "", {{"studies", std::move(list)}},
      {{.name = "studies", .value = static_cast<double>(study::studies().size()), .unit = ""}}));
}

std::size_t counted(const std::vector<study::Figure>& figures) {
  return static_cast<std::size_t>(
      std::ranges::count_if(figures, [](const study::Figure& figure) { return figure.value.has_value(); }));
}

record::Result result_of(const study::Report& report, const fs::path& out) {
  const auto metric = [](const char* name, std::size_t count) {
    return Metric{.name = name, .value = static_cast<double>(count), .unit = ""};
  };
  const auto published = static_cast<std::size_t>(std::ranges::count_if(
      report.cells.list, [](const study::Cell& cell) { return cell.published.has_value(); }));
  record::Result result =
      command_result("study", "", {{"study", report.study.name}},
                     {metric("cells", report.cells.list.size()), metric("cells_published", published),
                      metric("cells_predicted", counted(report.predicted)),
                      metric("cells_measured", counted(report.measured)),
                      metric("cells_executed", counted(report.executed))});
  result.details["report"] = study::json_of(report);
  result.folder = out.string();
  return result;
}

study::AllocationSettings allocation_settings(const Arguments& arguments) {
  return {.trainings = arguments.trainings, .samples = arguments.training_samples, .threads = thread_count()};
}

void tell_allocation(const study::Allocation& allocation, const fs::path& out) {
  study::write_allocation(allocation, out);
  if (common().quiet) return;
  fmt::print("{}the request is {} and {}\n", study::text_of(allocation), (out / "allocation.html").string(),
             (out / "allocation.pdf").string());
}

study::Report run_one(const study::Study& each, const fs::path& out, double minutes) {
  const StopNote note(
      fmt::format("go on with the same command: what is in {} is not done again", out.string()));
  return study::run(
      each, {.out = out, .minutes = minutes, .threads = common().threads, .processors = thread_count()});
}

// Each gets its share of the time, by what it takes by default.
void run_all(const Arguments& arguments) {
  const fs::path out = arguments.out.empty() ? "study" : arguments.out;
  double minutes = 0;
  for (const study::Study& each : study::studies()) minutes += each.minutes;
  const double share = arguments.minutes > 0 ? arguments.minutes / minutes : 1;
  std::vector<study::Study> done;
  std::vector<Metric> metrics;
  for (const study::Study& each : study::studies()) {
    const study::Report report = run_one(each, out / each.name, share * each.minutes);
    done.push_back(each);
    study::write_contents(out, done);
    if (!common().quiet) fmt::print("{}\n", study::text_of(report));
    metrics.push_back({.name = each.name + "_measured",
                       .value = static_cast<double>(counted(report.measured)),
                       .unit = ""});
  }
  if (!common().quiet) fmt::print("the pages are {}\n", (out / "index.html").string());
  write_result(command_result("study", "", {{"study", "all"}, {"minutes", arguments.minutes}}, metrics));
}

// In place of those that the study's file states.
void set_prices(study::Study& study, const std::map<std::string, double>& prices) {
  for (const auto& [machine, dollars] : prices) {
    const auto found = std::ranges::find(study.prices, machine, &study::Price::machine);
    if (found == study.prices.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("the study {} has no price of it", study.name),
                  machine, "--price is of machines that its file states a [[price]] of");
    found->dollars = dollars;
    found->source = "given with --price";
  }
}

void run_study(const Arguments& arguments, const std::map<std::string, double>& prices) {
  if (arguments.what == "list") return list_studies();
  if (arguments.what == "all") return run_all(arguments);
  if (arguments.print) {
    const bool file = arguments.what.ends_with(".toml");
    fmt::print("{}", file ? read_text_file(arguments.what) : std::string(study::text_of(arguments.what)));
    return;
  }
  study::Study asked = study::find_study(arguments.what);
  set_prices(asked, prices);
  const fs::path out = arguments.out.empty() ? fs::path("study") / asked.name : fs::path(arguments.out);
  const study::Report report = run_one(asked, out, arguments.minutes);
  if (!common().quiet)
    fmt::print("{}the page is {}\n", study::text_of(report), (out / "index.html").string());
  if (!arguments.report.empty())
    tell_allocation(study::allocation_of(report, allocation_settings(arguments)), out);
  write_result(result_of(report, out));
}

}  // namespace

void declare_study(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("study", arguments->what,
                  "list, all, one by its name, a study's file (.toml), or quality: time to a quality")
      ->capture_default_str();
  command
      .add_option("--minutes", arguments->minutes, "time for what is measured (default: what the study says)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option(
          "--out", arguments->out,
          "folder of the study (default: study/NAME; with all: study); one that was stopped goes on there")
      ->type_name("DIR");
  command.add_flag("--print", arguments->print, "print the study's file, to begin one of your own with");
  command
      .add_option("--report", arguments->report,
                  "allocation: also what a request for computing time asks, as a page and as PDF")
      ->type_name("KIND")
      ->check(CLI::IsMember({"allocation"}));
  auto* const asked = command.get_option("--report");
  command.add_option("--trainings", arguments->trainings, "trainings that --report asks for")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(asked)
      ->capture_default_str();
  command
      .add_option("--training-samples", arguments->training_samples,
                  "samples that a training of --report sees (default: as its recipe says, or measured)")
      ->type_name("N")
      ->check(positive())
      ->needs(asked);
  command.footer(examples);
  const auto quality = std::make_shared<QualityArguments>();
  add_quality_options(command, quality);
  command.callback([arguments, quality, &command] {
    if (arguments->what == "quality") {
      refuse_given(command, "means nothing to study quality: each training has its own end",
                   {"--minutes", "--print"});
      const study::QualityReport report = study_quality(*quality, arguments->out);
      if (!arguments->report.empty())
        tell_allocation(study::allocation_of(report, allocation_settings(*arguments)), report.settings.out);
      return;
    }
    refuse_quality_options(command);
    refuse_given(command, arguments->what == "list" ? "means nothing where studies are listed" : "",
                 {"--minutes", "--out", "--print", "--report", "--price"});
    refuse_given(command, arguments->what == "all" ? "is of one study" : "",
                 {"--print", "--report", "--price"});
    refuse_given(command, arguments->print ? "means nothing with --print" : "",
                 {"--minutes", "--out", "--report", "--price"});
    run_study(*arguments, prices_of(*quality));
  });
}

}  // namespace superstep::cli
