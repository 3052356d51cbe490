#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/built_kernels.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/instruction_set.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/threads/processors.h"
#include "superstep/cli/call/config_file.h"
#include "superstep/cli/call/words.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/output_paths.h"
#include "superstep/cli/wing.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::cli {

Common& common() {
  static Common options;
  return options;
}

int thread_count() { return common().threads > 0 ? common().threads : default_threads(); }

namespace {

constexpr int exit_failed = 1, exit_wrong_call = 2, exit_interrupted = 130;

void declare_common(CLI::App& command, bool has_result) {
  if (has_result) {
    command.add_option("--json", common().json, "write the result as JSON to this file")->type_name("FILE");
    command.add_flag(
        "--private", common().for_others,
        "leave this machine's name and full paths out of results and records (or SUPERSTEP_PRIVATE=1)");
  }
  command.add_flag("--quiet", common().quiet, "no signs of progress and no tables");
  command
      .add_option(
          "--progress", common().progress,
          "signs of long work on standard error: none, line, bar (default: bar on a terminal, else line)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"none", "line", "bar"}));
  command
      .add_option("--threads", common().threads,
                  "threads to use (default: as many as this process may have processors)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

// A program that was built for the vectors of another machine is right here, and slower than it need be.
void tell_of_slow_kernels() {
  if (const auto set = widest_given_away())
    tell(fmt::format(
        "superstep: note: this program was built without kernels for {}, which this processor has: {} "
        "is used instead\n  build it here, or with -DSUPERSTEP_KERNELS=all\n",
        name_of(*set), name_of(available_instruction_sets().back())));
}

// Commands that this one starts (scale, workflows, the learner) keep results as it does; a user may say it
// once for all.
void hand_on_privacy() {
  constexpr const char* name = "SUPERSTEP_PRIVATE";
  const char* const said = std::getenv(name);
  if (said && *said && std::string_view(said) != "0") common().for_others = true;
  if (common().for_others) ::setenv(name, "1", 1);
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

// Of work that is finished first: nobody need wonder whether the signal was heard.
std::string words_while_held(const std::string& reason) {
  if (run::launched_rank() > 0) return {};
  return fmt::format("{}superstep: stopping: {}; asked again, it ends at once\n",
                     progress_line_is_open() ? "\n" : "", reason);
}

// Names of columns, cells and words of a call stand in messages as they are: here they steer no terminal.
int report(const Error& error) {
  if (run::launched_rank() > 0) return exit_code_of(error);  // the first rank speaks for all
  if (error.code() == ErrorCode::interrupted) {
    tell(printable_lines(fmt::format("superstep: stopped: {}\n", error.message())));
  } else {
    tell(printable_lines(fmt::format("superstep: error: {}{}{}\n", error.where(),
                                     error.where().empty() ? "" : ": ", error.message())));
  }
  if (!error.hint().empty()) tell(printable_lines(fmt::format("  {}\n", error.hint())));
  return exit_code_of(error);
}

std::string name_of_command(const CLI::App& program) {
  const auto parsed = program.get_subcommands();
  return parsed.empty() ? std::string() : parsed.front()->get_name();
}

// What the system refused where nobody expected it.
int report(const std::system_error& error) {
  if (standard_output_failed())  // more was printed than it holds before it writes
    return report(Error(ErrorCode::io, "cannot be written: " + error.code().message(), "standard output",
                        "what this command prints is not complete"));
  if (error.code() == std::errc::too_many_files_open)
    return report(
        Error(ErrorCode::io, error.code().message(), {}, "raise the limit on open files (ulimit -n)"));
  if (const auto* const of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return report(Error(ErrorCode::io, error.code().message(), of_file->path1().string()));
  if (error.code() != std::errc::resource_unavailable_try_again) {
    tell(fmt::format("superstep: error: {}\n", error.what()));
    return exit_failed;
  }
  return report(
      Error(ErrorCode::io, "a thread cannot be started: " + error.code().message(), {},
            "give fewer --threads, or raise the limits on processes and memory (ulimit -u, ulimit -v)"));
}

// Work has some large frames of numbers; what a stack has no room for ends a program without a word.
void require_stack() {
  constexpr rlim_t least =
      256 * 1024;  // bytes: with half of it training ends, with this much all of the zoo runs
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur >= least)
    return;
  throw Error(ErrorCode::io,
              fmt::format("the stack is limited to {} kB, which is too little", stack.rlim_cur / 1024), {},
              "raise the limit: ulimit -s 8192");
}

// Whether the options of this command matter to a call of these words: some thousand options take
// milliseconds to declare, which every call would pay for. Who asks what there is asks for all.
bool is_asked_for(const Command& command, const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return word == command.name || word == "completion" || word == "man" || word == asked_to_describe;
  });
}

void declare_all(CLI::App& program, const std::vector<std::string>& words) {
  program.set_version_flag("--version", "superstep " SUPERSTEP_VERSION);
  program.require_subcommand(1);
  program.footer(
      "'superstep COMMAND --help', or 'superstep help COMMAND', explains a command.\n"
      "It ends with 0 (done; help was asked for, or nothing), 1 (the work failed), 2 (the call was wrong) or "
      "130 "
      "(stopped).");
  for (const Command& command : commands()) {
    CLI::App* added = program.add_subcommand(command.name, command.summary);
    added->group(command.group);
    if (!is_asked_for(command, words) || !declare_here(command, *added)) continue;
    declare_common(*added, command.has_result);
    try_output_paths(*added);
  }
  program.parse_complete_callback([&program] {
    show_progress(name_of_command(program));
    hand_on_privacy();
    if (!common().quiet) tell_of_slow_kernels();
  });
}

const Command* find_command(const std::string& name) {
  const auto found = std::ranges::find_if(commands(), [&](const Command& each) { return name == each.name; });
  return found == commands().end() ? nullptr : &*found;
}

// Where the call is of a command of another wing.
void go_on_where_it_is_declared(const std::string& name) {
  const Command* const command = find_command(name);
  if (command && command->wing && std::string(command->wing) != (this_wing().name ? this_wing().name : ""))
    go_on_in(command->wing);
}

// What follows "--" of a command that hands it on to the program that it starts; taken out of the words.
std::vector<std::string> take_handed_on(std::vector<std::string>& words) {
  const Command* const command = words.empty() ? nullptr : find_command(words[0]);
  if (!command || !command->hands_on) return {};
  const auto mark = std::ranges::find(words, "--");
  if (mark == words.end()) return {};
  std::vector<std::string> handed_on(mark + 1, words.end());
  words.erase(mark, words.end());
  return handed_on;
}

int run(int argc, char** argv) {
  instruction_set();  // a name in SUPERSTEP_ISA that means nothing is refused by every command
  require_stack();
  CLI::App program(
      "Superstep: compiles scientific machine-learning models, trains and serves them, and predicts how "
      "they run on AI accelerators.",
      "superstep");
  std::vector<std::string> words{argv + 1, argv + argc};
  declare_all(program, words);
  if (words == std::vector<std::string>{asked_to_describe}) {
    describe_this_wing(describe(program));
    return 0;
  }
  tell_of_another_revision();
  common().words = words;
  common().handed_on = take_handed_on(words);
  words = understood(std::move(words), program);
  require_known_command(words, program);
  go_on_where_it_is_declared(words[0]);
  words = with_config_file(std::move(words), program);
  try {
    std::ranges::reverse(words);  // CLI11 takes them from the end
    program.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw explained(error, program);
    program.exit(error);  // help, or the version
  }
  flush_standard_output();
  return 0;
}

}  // namespace
}  // namespace superstep::cli

// Before the libraries that the program is linked to begin, which takes longer than they need: who is stopped
// at once ends as later, with 130, and no half-written file is left.
// What came while another program went on in this one (cli/wing.cpp) has waited.
static void heed_signals(int, char**, char**) {
  superstep::watch_for_interrupts();
  superstep::cli::hold_stops(false);
}
[[gnu::section(".preinit_array"), gnu::used]] static void (*const heeded_early)(int, char**,
                                                                                char**) = heed_signals;

namespace {

// Whatever the mask of new files says: what everybody may write to is nobody's work any more.
void keep_others_from_writing() {
  const mode_t given = ::umask(S_IWOTH);
  ::umask(given | S_IWOTH);
}

}  // namespace

int main(int argc, char** argv) {
  using superstep::cli::report;
  keep_others_from_writing();
  superstep::heed_parent();
  superstep::occupy_standard_descriptors();
  superstep::watch_for_interrupts();
  superstep::end_when_asked(superstep::cli::exit_interrupted, superstep::cli::words_at_the_end,
                            superstep::cli::words_while_held);
  if (superstep::run::launched_rank() > 0) {
    superstep::cli::common().quiet = true;
    if (!std::freopen("/dev/null", "w", stdout)) return superstep::cli::exit_failed;
  }
  try {
    return superstep::cli::run(argc, argv);
  } catch (const superstep::Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    superstep::tell("superstep: error: out of memory\n");
  } catch (const std::system_error& error) {
    return report(error);
  } catch (const std::exception& error) {
    superstep::tell(fmt::format("superstep: internal error: {}\n", error.what()));
  }
  return superstep::cli::exit_failed;
}
