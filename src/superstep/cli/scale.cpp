// superstep scale: training over several ranks, strong and weak.
#include "superstep/lab/ranks/scale.h"

#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/threads/processors.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

struct Arguments {
  lab::ScaleSettings settings;
  std::string mode = "weak", format = "text", out;
};

void scale(Arguments arguments) {
  lab::ScaleSettings& settings = arguments.settings;
  workload::find_workload(settings.workload);
  if (arguments.mode != "weak" && arguments.mode != "strong")
    throw Error(ErrorCode::invalid_argument, "there is no such mode", arguments.mode,
                "there are strong and weak");
  if (arguments.format != "text") lab::find_writer(arguments.format);
  settings.mode = arguments.mode == "weak" ? lab::ScaleMode::weak : lab::ScaleMode::strong;
  const int most = std::ranges::max(settings.ranks);
  // The same threads in every run, so that ranks are all that changes.
  settings.threads = common().threads > 0 ? common().threads : std::max(1, default_threads() / most);
  if (!common().quiet) settings.progress = [](const std::string& what) { tell(what + "\n"); };
  const record::HostLoad load;
  std::vector<record::Result> results = lab::measure_scaling(settings);
  if (arguments.format != "text") return finish_results(results, load, {arguments.format, arguments.out});
  keep_results(results, load);
  if (!common().quiet) fmt::print("{}", lab::scaling_table(results));
  if (const std::string warning = load.warning(); !warning.empty() && !common().quiet)
    tell(fmt::format("note: {}\n", warning));
}

}  // namespace

void declare_scale(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  lab::ScaleSettings& settings = a->settings;
  command.add_option("workload", settings.workload, "what to train: superstep list workloads")->required();
  command.add_option("--mode", a->mode, "strong: the same batch in all; weak: the same batch a rank")
      ->type_name("MODE")
      ->capture_default_str();
  command.add_option("--ranks", settings.ranks, "numbers of ranks")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--batch", settings.batch, "samples per step: of all ranks (strong), of each (weak)")
      ->type_name("N")
      ->check(positive());
  command.add_option("--steps", settings.steps, "steps per run")
      ->type_name("N")
      ->check(CLI::Range(2, 1000000000))
      ->capture_default_str();
  command.add_option("--samples", settings.samples, "samples of generated data")
      ->type_name("N")
      ->check(positive());
  command.add_option("--repeat", settings.repeat, "runs of each number of ranks")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--precision", settings.precision, "f32 or bf16")
      ->type_name("TYPE")
      ->capture_default_str();
  command.add_option("--launcher", settings.launcher, "the program that starts ranks")
      ->type_name("PROGRAM")
      ->capture_default_str();
  command.add_option("--format", a->format, "text, json, csv, google, mllog")
      ->type_name("FORMAT")
      ->capture_default_str();
  command.add_option("--out", a->out, "file for it (default: standard output)")->type_name("FILE");
  command.footer(
      "Examples:\n"
      "  superstep scale braggnn --mode weak --ranks 1,2\n"
      "  mpirun -n 2 superstep train braggnn --data peaks.h5 --out run/      training on several ranks\n"
      "Gradients are averaged over ranks in the order of ranks: the same bits every time.");
  command.callback([a] { scale(*a); });
}

}  // namespace superstep::cli
