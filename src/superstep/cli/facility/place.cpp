// superstep place WORKFLOW --on FACILITY: which task on which machine, and when does the answer come.
#include "superstep/facility/place/place.h"

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/cli/command.h"
#include "superstep/cli/facility/files.h"
#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {
namespace {

struct Arguments {
  FacilityFiles files;
  std::string aim, out;
  int draws = 100, shown = 3;
  std::int64_t most = 2'000;
  std::uint64_t seed = 1;
};

constexpr const char* footer =
    "Simulated, with stated and predicted times; docs/facility.md describes both files.\n"
    "Examples:\n"
    "  superstep place examples/facility/hedm.toml --on examples/facility/beamline.toml\n"
    "  superstep place hedm.toml --on beamline.toml --for latency --out placed/     a page, and a trace for "
    "Perfetto\n"
    "  superstep place hedm.toml --on beamline.toml --fix train=gpus --draws 1000";

void place(const Arguments& arguments, const CLI::App& command) {
  if (!arguments.out.empty()) require_writable_folder(arguments.out);
  facility::PlaceSettings settings{.workflow = arguments.files.workflow,
                                   .facility = arguments.files.facility,
                                   .fixed = arguments.files.fixed};
  settings.aim_said = command.count("--for") > 0;
  if (settings.aim_said) settings.aim = facility::aim_from_name(arguments.aim);
  settings.assess = {.draws = arguments.draws, .seed = arguments.seed, .threads = thread_count()};
  settings.limits.most_simulated = static_cast<std::size_t>(arguments.most);
  settings.shown = static_cast<std::size_t>(arguments.shown);
  settings.timing.threads = thread_count();
  Progress progress = Progress::phase("placing");
  settings.timing.progress = [&](const std::string& what) { progress.update(0, what); };
  const facility::Placed placed = facility::place(settings);
  progress.finish();
  if (!common().quiet) fmt::print("{}", facility::text_of(placed));
  record::Result result = command_result("place", placed.problem.workflow.name, facility::config_of(placed),
                                         facility::metrics_of(placed));
  if (!arguments.out.empty()) {
    const std::filesystem::path folder = arguments.out;
    make_folder(folder);
    facility::write_page(placed, folder / "index.html");
    write_file_atomically(folder / "trace.json", facility::trace_of(placed.problem, placed.best.front()));
    if (!common().quiet) fmt::print("the page is {}\n", (folder / "index.html").string());
    result.folder = folder;
  }
  write_result(std::move(result));
  if (!placed.meets_targets())
    throw Error(ErrorCode::invalid_argument, "no placement that was found meets every target",
                arguments.files.workflow, "the tables above say by how much, and what would help");
}

}  // namespace

void declare_place(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  add_facility_files(command, arguments->files);
  command
      .add_option(
          "--for", arguments->aim,
          "what to choose by, once targets are met: end, latency, cost, energy (default: the first target)")
      ->type_name("WHAT");
  command.add_option("--draws", arguments->draws, "simulations with all that is uncertain drawn at random")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command.add_option("--seed", arguments->seed, "seed of the draws")->capture_default_str();
  command.add_option("--placements", arguments->most, "simulate at most so many placements in the search")
      ->check(whole_number_from(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--show", arguments->shown, "placements that are looked at closely")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  command.add_option("--out", arguments->out, "a folder for the page and the trace")->type_name("DIR");
  command.footer(footer);
  command.callback([arguments, &command] { place(*arguments, command); });
}

}  // namespace superstep::cli
