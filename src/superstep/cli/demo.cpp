// superstep demo edge: an experiment that is not there, end to end.
#include "superstep/edge/demo/demo.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/statistics.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  superstep demo edge                        some minutes on two cores; then look at "
    "edge-demo/report.html\n"
    "  superstep demo edge --out here --scans 5   longer\n"
    "Scans whose probe drifts are generated, sent by a simulated detector, answered by a server that "
    "stitches and\n"
    "learns after each of them; the report has the error over time, with and without learning.";

struct Arguments {
  std::string what, out = "edge-demo";
  edge::DemoSettings settings;
  int port = 0;
};

std::string table_of(const edge::DemoReport& report) {
  TextTable table({"scan", "version", "error (rad)", "without", "correlation", "without", "learnt in"});
  for (const edge::DemoScan& scan : report.scans)
    table.add_row({scan.name, scan.version, fmt::format("{:.3f}", mean(scan.errors)),
                   fmt::format("{:.3f}", mean(scan.without)), fmt::format("{:.3f}", scan.correlation),
                   fmt::format("{:.3f}", scan.correlation_without), format_seconds(scan.learnt_seconds)});
  return table.to_string();
}

std::vector<Metric> metrics_of(const edge::DemoReport& report) {
  std::vector<Metric> metrics{{.name = "time", .value = report.seconds, .unit = "s"}};
  const auto add = [&](const std::string& name, double value, const char* unit) {
    metrics.push_back({.name = name, .value = value, .unit = unit});
  };
  int number = 0;
  for (const edge::DemoScan& scan : report.scans) {
    const std::string name = fmt::format("scan{}_", ++number);
    add(name + "phase_mae", mean(scan.errors), "rad");
    add(name + "phase_mae_without", mean(scan.without), "rad");
    add(name + "correlation", scan.correlation, "");
    add(name + "learnt_in", scan.learnt_seconds, "s");
  }
  add("frames_served", static_cast<double>(report.served.stream.of(edge::Outcome::served)), "");
  add("frames_missing", static_cast<double>(report.served.stream.missing), "");
  return metrics;
}

void demo(const Arguments& arguments) {
  edge::DemoSettings settings = arguments.settings;
  settings.folder = arguments.out;
  settings.threads = thread_count();
  settings.port = static_cast<std::uint16_t>(arguments.port);
  const edge::DemoReport report = edge::run_demo(settings, [](const std::string& what) {
    if (common().quiet) return;
    fmt::print("{}\n", what);
    flush_standard_output();
  });
  if (!common().quiet)
    fmt::print("\n{}report: {}\n", table_of(report), (settings.folder / "report.html").string());
  write_result(command_result("demo", "edge",
                              {{"scans", settings.scans},
                               {"points", settings.points},
                               {"rate", settings.rate},
                               {"epochs", settings.epochs},
                               {"seed", settings.seed}},
                              metrics_of(report)));
}

}  // namespace

void declare_demo(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command.add_option("what", a->what, "edge: a detector, a server that stitches and learns")
      ->required()
      ->check(CLI::IsMember({"edge"}));
  command.add_option("--out", a->out, "the folder of all that is made")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_option("--scans", a->settings.scans, "that are sent")
      ->type_name("N")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--points", a->settings.points, "points per scan")
      ->type_name("N")
      ->check(CLI::Range(100, 100000))
      ->capture_default_str();
  command.add_option("--rate", a->settings.rate, "frames per second")
      ->type_name("R")
      ->check(number_from(1, 1e6))
      ->capture_default_str();
  command.add_option("--first-epochs", a->settings.first_epochs, "epochs of training before the scans")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command.add_option("--epochs", a->settings.epochs, "epochs of training after each scan")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command.add_option("--seed", a->settings.seed, "seed of the scans and of the training")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--port", a->port, "port of the page that shows the scan; 0: any that is free")
      ->type_name("N")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.footer(examples);
  command.callback([a] { demo(*a); });
}

}  // namespace superstep::cli
