#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "superstep/base/error.h"
#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/base/thread_pool.h"
#include "superstep/cli/command.h"
#include "superstep/cli/output_paths.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::cli {

Common& common() {
  static Common options;
  return options;
}

int thread_count() { return common().threads > 0 ? common().threads : available_processors(); }

namespace {

constexpr int exit_failed = 1, exit_wrong_call = 2, exit_interrupted = 130;

void declare_common(CLI::App& command, bool has_result) {
  if (has_result)
    command.add_option("--json", common().json, "write the result as JSON to this file")->type_name("FILE");
  command.add_flag("--quiet", common().quiet, "no signs of progress and no tables");
  command
      .add_option(
          "--progress", common().progress,
          "of long work, on standard error: none, line, bar (default: bar on a terminal, line elsewhere)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"none", "line", "bar"}));
  command.add_option("--threads", common().threads, "threads to use (default: every processor there is)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

// Lines where nobody watches a bar: a log says that the work goes on.
void show_progress(const std::string& command) {
  set_quiet(common().quiet);
  const bool bar = common().progress.empty() ? isatty(STDERR_FILENO) != 0 : common().progress == "bar";
  const bool none = common().quiet || common().progress == "none";
  set_progress(none ? ProgressMode::none : bar ? ProgressMode::bar : ProgressMode::line);
  if (!none && !bar) start_progress_lines("superstep " + command);
}

int exit_code_of(const Error& error) {
  if (error.code() == ErrorCode::interrupted) return exit_interrupted;
  return error.code() == ErrorCode::invalid_argument ? exit_wrong_call : exit_failed;
}

// Of work that did not look up in time.
std::string words_at_the_end(const std::string& note) {
  if (run::launched_rank() > 0) return {};
  return fmt::format("{}superstep: stopped: in the middle of its work\n{}",
                     progress_line_is_open() ? "\n" : "", note.empty() ? "" : fmt::format("  {}\n", note));
}

int report(const Error& error) {
  if (run::launched_rank() > 0) return exit_code_of(error);  // the first rank speaks for all
  if (error.code() == ErrorCode::interrupted) {
    fmt::print(stderr, "superstep: stopped: {}\n", error.message());
  } else {
    fmt::print(stderr, "superstep: error: {}{}{}\n", error.where(), error.where().empty() ? "" : ": ",
               error.message());
  }
  if (!error.hint().empty()) fmt::print(stderr, "  {}\n", error.hint());
  return exit_code_of(error);
}

std::string name_of_command(const CLI::App& program) {
  const auto parsed = program.get_subcommands();
  return parsed.empty() ? std::string() : parsed.front()->get_name();
}

int run(int argc, char** argv) {
  CLI::App program(
      "Superstep: compiles scientific machine-learning models, trains and serves them, and predicts how "
      "they run on AI accelerators.",
      "superstep");
  program.set_version_flag("--version", "superstep " SUPERSTEP_VERSION);
  program.require_subcommand(1);
  program.footer("'superstep COMMAND --help' explains a command.");
  for (const Command& command : commands()) {
    CLI::App* added = program.add_subcommand(command.name, command.summary);
    command.declare(*added);
    declare_common(*added, command.has_result);
    try_output_paths(*added);
  }
  program.parse_complete_callback([&program] { show_progress(name_of_command(program)); });
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : exit_wrong_call;
  }
  return 0;
}

}  // namespace
}  // namespace superstep::cli

int main(int argc, char** argv) {
  superstep::watch_for_interrupts();
  superstep::end_when_asked(superstep::cli::exit_interrupted, superstep::cli::words_at_the_end);
  if (superstep::run::launched_rank() > 0) {
    superstep::cli::common().quiet = true;
    if (!std::freopen("/dev/null", "w", stdout)) return superstep::cli::exit_failed;
  }
  try {
    return superstep::cli::run(argc, argv);
  } catch (const superstep::Error& error) {
    return superstep::cli::report(error);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "superstep: error: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "superstep: internal error: {}\n", error.what());
  }
  return superstep::cli::exit_failed;
}
