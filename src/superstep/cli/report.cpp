// superstep report: a training run, or results of benchmarks, as one table and one page.
#include "superstep/lab/report/report.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/report/bench_report.h"
#include "superstep/record/named_results.h"
#include "superstep/record/records.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string run, out = "report", published;
  std::vector<std::string> results;
  std::int64_t samples = 20000;
};

// The newest run in the records that was kept in a folder.
std::string newest_run() {
  for (const record::Result& result : record::Records().list())
    if (result.command == "train" && !result.folder.empty() && std::filesystem::exists(result.folder))
      return result.folder;
  throw Error(ErrorCode::not_found, "no training run is in the records", "report",
              "train one with --out DIR, or name one with --run DIR");
}

void report_results(const Arguments& arguments) {
  lab::BenchReportSettings settings{.results = {}, .published = arguments.published, .out = arguments.out};
  for (const std::string& name : arguments.results)
    for (record::Result& result : record::load_results(name)) settings.results.push_back(std::move(result));
  const lab::BenchReport made = lab::make_bench_report(settings);
  if (!common().quiet) fmt::print("{}\nthe report is {}\n", made.text, made.page.string());
}

// Without a word about what: what was done last, a training run or benchmarks.
bool benchmarks_are_newest() {
  const auto newest = record::Records().list({.workload = {}, .command = {}, .most = 1});
  return !newest.empty() && (newest.front().command == "bench" || newest.front().command == "scale");
}

void report(Arguments arguments, const CLI::App& command) {
  if (arguments.run.empty() && arguments.results.empty() && benchmarks_are_newest())
    arguments.results = {"all"};
  refuse_given(command,
               arguments.results.empty() ? "" : "is of a training run, and measurements are reported",
               {"--run", "--samples"});
  refuse_given(command,
               arguments.results.empty() ? "stands beside measurements, and a training run is reported" : "",
               {"--published"});
  if (!arguments.results.empty()) return report_results(arguments);
  const std::string folder = arguments.run.empty() ? newest_run() : arguments.run;
  const lab::Report made = lab::make_report({.run = folder,
                                             .out = arguments.out,
                                             .samples = arguments.samples,
                                             .threads = thread_count(),
                                             .for_others = common().for_others});
  if (!common().quiet) fmt::print("{}\nthe report is {}\n", made.text, made.page.string());
  nlohmann::json config{{"run", folder}, {"samples", arguments.samples}};
  if (made.quality) config["quality"] = run::to_json(*made.quality);
  write_result(command_result("report", made.workload, config, made.metrics));
}

}  // namespace

void declare_report(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("--run", arguments->run,
                  "the folder of a training run (default: what was done last, a run or benchmarks)")
      ->type_name("DIR");
  command.add_option("--out", arguments->out, "folder for the page")->type_name("DIR")->capture_default_str();
  command.add_option("--samples", arguments->samples, "the most samples that the model is judged on")
      ->type_name("N")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  command
      .add_option(
          "--results", arguments->results,
          "report these instead of a training run: files written by --json, numbers of records, last, or all")
      ->type_name("NAME,...")
      ->delimiter(',');
  command.add_option("--published", arguments->published, "published rows to set beside them, in CSV")
      ->type_name("FILE");
  command.footer(
      "Examples:\n"
      "  superstep report --out site/                                 after superstep bench: all results\n"
      "  superstep report --run run/braggnn --out report/\n"
      "  superstep report --results primitives.json --published results.csv --out report/");
  command.callback([arguments, &command] { report(*arguments, command); });
}

}  // namespace superstep::cli
