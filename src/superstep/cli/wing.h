// Wings: commands with libraries of their own are in programs of their own beside this one. `superstep-serve`
// is all that `superstep` is with the commands of the wing `serve` as well; the command `serve` goes on in
// it.
#pragma once

#include <string>
#include <vector>

#include "superstep/cli/command.h"
#include "superstep/cli/help/description.h"
#include "superstep/cli/shared/bench_serve.h"

namespace superstep::cli {

struct WingCommand {
  const char* name;
  void (*declare)(CLI::App& command);
};

struct Wing {
  const char* name;  // as in Command::wing; null: the program without any
  std::vector<WingCommand> commands;
  ServeBench serve_bench = nullptr;  // of `bench serve`; null: another wing's
};

// Of the program that runs: one file in cli/wings/ each.
const Wing& this_wing();

// Declares the options of a command on `app` where this program has it; false where another wing does.
bool declare_here(const Command& command, CLI::App& app);

// The call goes on, from its first word, in the program of this wing, which takes this one's place. Throws
// Error (not_found, io) where that cannot be, and Error (interrupted) where the user has asked to stop.
[[noreturn]] void go_on_in(const std::string& wing);

// Says so on standard error where the program that went on in this one was built from another revision: one
// that was built alone has an old wing beside it.
void tell_of_another_revision();

// The signals that stop a command in order wait from now on, or no more: none is lost while one program takes
// another's place.
void hold_stops(bool hold);

// In `program` the commands of other wings as those programs describe them, where they are beside this one.
void complete_by_wings(CommandText& program);

// What a wing is asked by: the one word of its call. It prints its commands for complete_by_wings() then.
inline constexpr const char* asked_to_describe = "--describe-commands";
void describe_this_wing(const CommandText& program);

}  // namespace superstep::cli
