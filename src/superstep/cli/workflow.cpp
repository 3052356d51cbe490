// superstep workflow NAME --out DIR: a whole study of several steps, in one folder and one page.
#include "superstep/workflow/workflow.h"

#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/settings.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string name, out;
  std::vector<std::string> settings;
  bool list_options = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep workflow conductivity --out study/\n"
    "  superstep workflow conductivity --out study/          after Ctrl-C: what is done is not done again\n"
    "  superstep workflow conductivity --set side=256 --set samples=1520 --set test=152 --out published/\n"
    "  superstep workflow conductivity --options";

void list_workflows() {
  TextTable table({"workflow", "what it does"});
  for (const workflow::Entry& entry : workflow::workflows()) table.add_row({entry.name, entry.summary});
  fmt::print("{}", table.to_string());
}

void run_workflow(const Arguments& arguments) {
  if (arguments.name.empty()) return list_workflows();
  const workflow::Entry& entry = workflow::find_workflow(arguments.name);
  if (arguments.list_options) {
    fmt::print("{}: {}\n\n", entry.name, entry.summary);
    return print_options(entry.options);
  }
  if (arguments.out.empty())
    throw Error(ErrorCode::invalid_argument, "into which folder? give --out DIR", "workflow");
  const Options options(entry.options, arguments.settings);
  const StopNote note("go on with the same command: what is done is not done again");
  const workflow::Outcome outcome = entry.run({.out = arguments.out, .threads = thread_count()}, options);
  if (!common().quiet) fmt::print("{}the report is {}\n", outcome.text, outcome.page.string());
  nlohmann::json config{{"threads", thread_count()}};
  config["options"] = to_json(options);
  record::Result result = command_result("workflow", entry.name, config, outcome.metrics);
  result.folder = arguments.out;
  write_result(std::move(result));
}

}  // namespace

void declare_workflow(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("workflow", arguments->name, "which one; without it, what there is is listed");
  command.add_option("--out", arguments->out, "its folder; one that was stopped goes on there")
      ->type_name("DIR");
  command
      .add_option("--set", arguments->settings, "name=value of an option of the workflow; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_flag("--options", arguments->list_options, "list the options of the workflow");
  command.footer(examples);
  command.callback([arguments, &command] {
    const bool lists = arguments->list_options || arguments->name.empty();
    refuse_given(command, lists ? "is of work, and a list is asked for" : "", {"--out", "--set"});
    run_workflow(*arguments);
  });
}

}  // namespace superstep::cli
