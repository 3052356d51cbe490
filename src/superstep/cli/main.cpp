#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/base/thread_pool.h"
#include "superstep/cli/command.h"
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
  command.add_flag("--quiet", common().quiet, "no progress bars and no tables");
  command.add_option("--threads", common().threads, "threads to use (default: every processor there is)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

int exit_code_of(const Error& error) {
  if (error.code() == ErrorCode::interrupted) return exit_interrupted;
  return error.code() == ErrorCode::invalid_argument ? exit_wrong_call : exit_failed;
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
    added->parse_complete_callback([] {
      set_quiet(common().quiet);
      if (!common().json.empty()) require_writable(common().json);
    });
  }
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
