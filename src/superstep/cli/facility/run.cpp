// superstep run WORKFLOW --on FACILITY --out DIR: the workflow done for real, what is not here emulated.
#include "superstep/facility/run/run.h"

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/cli/command.h"
#include "superstep/cli/facility/files.h"
#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {
namespace {

struct Arguments {
  FacilityFiles files;
  std::string out;
  std::int64_t items = 0;
  double speed = 1;
};

constexpr const char* footer =
    "Tasks with run = \"...\" are done: here, or as jobs of Slurm; the others, links and queues take their "
    "simulated\n"
    "time. docs/facility.md describes both files, and what a command finds in its environment.\n"
    "Examples:\n"
    "  superstep run examples/facility/bragg.toml --on examples/facility/server.toml --out ran/\n"
    "  superstep run hedm.toml --on beamline.toml --items 20 --speed 600 --out ran/   all emulated: a "
    "rehearsal\n"
    "  superstep run hedm.toml --on beamline.toml --items 20 --speed 600 --out ran/   after Ctrl-C: goes on";

void run(const Arguments& arguments) {
  facility::RunSettings settings{
      .out = arguments.out, .speed = arguments.speed, .most_items = arguments.items};
  settings.place.workflow = arguments.files.workflow;
  settings.place.facility = arguments.files.facility;
  settings.place.fixed = arguments.files.fixed;
  settings.place.assess.threads = settings.place.timing.threads = thread_count();
  const StopNote note("go on with the same command: what is done is not done again");
  Progress progress = Progress::phase("running");
  settings.place.timing.progress = [&](const std::string& what) { progress.update(0, what); };
  const facility::Ran ran = facility::run(settings);
  progress.finish();
  if (!common().quiet)
    fmt::print("{}the page is {}\n", facility::text_of(ran),
               (std::filesystem::path(arguments.out) / "index.html").string());
  record::Result result = command_result("run", ran.placed.problem.workflow.name,
                                         facility::config_of(ran.placed), facility::metrics_of(ran));
  result.folder = arguments.out;
  write_result(std::move(result));
}

}  // namespace

void declare_run(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  add_facility_files(command, arguments->files);
  command.add_option("--out", arguments->out, "the run's folder; one that was stopped goes on there")
      ->type_name("DIR")
      ->required();
  command.add_option("--items", arguments->items, "the first items of each source alone")
      ->check(whole_number_from(1, 100'000))
      ->type_name("N");
  command
      .add_option("--speed", arguments->speed, "simulated seconds per second, where every task is emulated")
      ->check(number_from(1e-3, 1e6))
      ->capture_default_str();
  command.footer(footer);
  command.callback([arguments] { run(*arguments); });
}

}  // namespace superstep::cli
