// superstep generate WORKLOAD --samples N --out FILE: data made from the physics of a workload.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/cli/about/list.h"
#include "superstep/cli/command.h"
#include "superstep/cli/settings.h"
#include "superstep/cli/shared/bytes_at.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/physics/generator.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string workload, out;
  std::uint64_t samples = 0, seed = 1;
  std::vector<std::string> settings;
  bool list_options = false;
};

std::string examples() {
  return "Examples:\n"
         "  superstep generate braggnn --samples 77267 --out peaks.h5\n"
         "  superstep generate braggnn --options\n"
         "  superstep generate braggnn --set mode=frames --samples 40 --out frames.h5\n"
         "A sample depends on the seed and its index alone: more samples of the same seed begin with the\n"
         "same ones, on any number of threads. Ctrl-C stops and leaves no file.";
}

void require_complete(const Arguments& arguments) {
  if (arguments.samples == 0)
    throw Error(ErrorCode::invalid_argument, "how many samples? give --samples N", "generate");
  if (arguments.out.empty())
    throw Error(ErrorCode::invalid_argument, "into which file? give --out FILE", "generate");
}

void report(const Arguments& arguments, const Options& options, double seconds) {
  const double bytes = bytes_at(arguments.out);
  const double rate = static_cast<double>(arguments.samples) / seconds;
  if (!common().quiet)
    fmt::print("{}: {} samples, {}, in {}: {} samples/s on {} threads\n", arguments.out,
               format_count(static_cast<double>(arguments.samples)), format_bytes(bytes),
               format_seconds(seconds), format_count(rate), thread_count());
  nlohmann::json config{
      {"samples", arguments.samples}, {"seed", arguments.seed}, {"threads", thread_count()}};
  config["options"] = to_json(options);
  write_result(command_result("generate", arguments.workload, config,
                              {{.name = "throughput", .value = rate, .unit = "samples/s"},
                               {.name = "elapsed", .value = seconds, .unit = "s"}}));
}

void generate(const Arguments& arguments) {
  if (arguments.workload.empty()) return list_generators();
  const data::GeneratorEntry& entry = data::find_generator(arguments.workload);
  if (arguments.list_options) {
    fmt::print("{}: {}\n\n", entry.name, entry.summary);
    return print_options(entry.options);
  }
  require_complete(arguments);
  tell_former_name(arguments.workload, entry.name);
  const Options options(entry.options, arguments.settings);
  const std::unique_ptr<data::Generator> generator = entry.make(options);
  ThreadPool pool(thread_count());
  const Stopwatch watch;
  generator->write({arguments.out, arguments.seed, arguments.samples, &pool});
  report(arguments, options, watch.seconds());
}

}  // namespace

void declare_generate(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("workload", arguments->workload,
                     "what to make data for; without it, what there is is listed");
  command.add_option("--samples", arguments->samples, "how many samples")
      ->type_name("N")
      ->check(whole_number_from(1));
  command
      .add_option("--out", arguments->out,
                  "the file to write: .h5 (HDF5), .npz, or what the workload's users have")
      ->type_name("FILE");
  command.add_option("--seed", arguments->seed, "seed of the random numbers")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
  command
      .add_option("--set", arguments->settings, "name=value of an option of the generator; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_flag("--options", arguments->list_options, "list the options of the workload's generator");
  command.footer(examples());
  command.callback([arguments, &command] {
    const bool lists = arguments->list_options || arguments->workload.empty();
    refuse_given(command, lists ? "is of work, and a list is asked for" : "",
                 {"--samples", "--out", "--seed", "--set"});
    generate(*arguments);
  });
}

}  // namespace superstep::cli
