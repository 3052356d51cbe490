// superstep baseline WORKLOAD --input FILE --output FILE: the conventional method that a model replaces.
#include "superstep/baseline/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/baseline/in_file.h"
#include "superstep/cli/about/list.h"
#include "superstep/cli/command.h"
#include "superstep/cli/settings.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/source/paths.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string workload, input, output, picture;
  std::vector<std::string> inputs, settings;
  bool list_options = false;
};

std::string examples() {
  return "Examples:\n"
         "  superstep baseline braggnn --input peaks.h5 --output fits.h5\n"
         "  superstep baseline braggnn --input peaks.h5 --set method=centroid --json centroid.json\n"
         "  superstep baseline braggnn --options";
}

// What a method finds wrong in the data is said of the file; what is wrong with an option, of the option.
[[noreturn]] void throw_of_input(const Error& error, const Arguments& arguments,
                                 const baseline::Entry& entry) {
  const bool of_option = std::ranges::any_of(
      entry.options, [&](const OptionSpec& option) { return error.where().starts_with(option.name); });
  const bool named = std::string(error.what()).find(arguments.input) != std::string::npos;
  if (of_option || named || error.code() == ErrorCode::interrupted) throw error;
  throw baseline::in_file(error, arguments.input);
}

baseline::Report run_method(const Arguments& arguments, const baseline::Entry& entry, const Options& options,
                            ThreadPool& pool) {
  try {
    return entry.run({arguments.input, arguments.output, arguments.picture, &pool}, options);
  } catch (const Error& error) {
    throw_of_input(error, arguments, entry);
  }
}

void run_baseline(const Arguments& arguments) {
  if (arguments.workload.empty()) return list_baselines();
  const baseline::Entry& entry = baseline::find_baseline(arguments.workload);
  if (arguments.list_options) {
    fmt::print("{}: {}\n\n", entry.name, entry.summary);
    return print_options(entry.options);
  }
  if (arguments.input.empty())
    throw Error(ErrorCode::invalid_argument, "on which data? give --input FILE", "baseline");
  tell_former_name(arguments.workload, entry.name);
  const Options options(entry.options, arguments.settings);
  ThreadPool pool(thread_count());
  const baseline::Report report = run_method(arguments, entry, options, pool);
  if (!common().quiet) fmt::print("{}", report.text);
  nlohmann::json config{{"input", arguments.input}, {"threads", thread_count()}};
  config["options"] = to_json(options);
  write_result(command_result("baseline", arguments.workload, config, report.metrics));
}

}  // namespace

void declare_baseline(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("workload", arguments->workload,
                     "whose method to run; without it, what there is is listed");
  add_data_option(command, "--input", arguments->inputs,
                  "the data: files, patterns, @LIST, NAME=PATH:ARRAY (docs/your-data.md)");
  command.add_option("--output", arguments->output, "where to write the result")->type_name("FILE");
  command.add_option("--picture", arguments->picture, "an HTML page to draw the result in")
      ->type_name("PAGE.html");
  command.add_option("--set", arguments->settings, "name=value of an option of the method; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_flag("--options", arguments->list_options, "list the options of the method");
  command.footer(examples());
  command.callback([arguments, &command] {
    const bool lists = arguments->list_options || arguments->workload.empty();
    if (!arguments->inputs.empty()) arguments->input = data::joined_names(arguments->inputs);
    refuse_given(command, lists ? "is of work, and a list is asked for" : "",
                 {"--input", "--output", "--picture", "--set"});
    run_baseline(*arguments);
  });
}

}  // namespace superstep::cli
