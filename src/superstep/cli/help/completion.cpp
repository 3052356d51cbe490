// superstep completion SHELL, superstep man [COMMAND]: what installations put beside the program.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/help/description.h"
#include "superstep/cli/wing.h"

namespace superstep::cli {
namespace {

constexpr const char* completion_examples =
    "Examples:\n"
    "  source <(superstep completion bash)                                  for this shell\n"
    "  superstep completion zsh > ~/.zfunc/_superstep                       for every zsh with ~/.zfunc in "
    "fpath\n"
    "  superstep completion fish > ~/.config/fish/completions/superstep.fish";
constexpr const char* man_examples =
    "Examples:\n"
    "  superstep man train | man -l -           read the page of a command\n"
    "  superstep man --out man/                 write them all: man/superstep.1, man/superstep-train.1, ...";

CommandText described(const CLI::App& program) {
  CommandText text = describe(program);
  complete_by_wings(text);
  return text;
}

void complete(const CLI::App& program, const std::string& shell) {
  const CommandText text = described(program);
  fmt::print("{}", shell == "bash"  ? bash_completion(text)
                   : shell == "zsh" ? zsh_completion(text)
                                    : fish_completion(text));
}

struct ManArguments {
  std::string command, out;
};

void write_pages(const CommandText& program, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "superstep.1", manual_page(program, program, SUPERSTEP_VERSION));
  for (const CommandText& command : program.commands)
    write_file_atomically(folder / ("superstep-" + command.path + ".1"),
                          manual_page(program, command, SUPERSTEP_VERSION));
}

void show_manual(const CLI::App& program, const ManArguments& arguments) {
  const CommandText text = described(program);
  if (!arguments.out.empty()) return write_pages(text, arguments.out);
  const CommandText* command = find_command(text, arguments.command);
  if (!command) {
    std::vector<std::string> names;
    for (const CommandText& known : text.commands) names.push_back(known.path);
    throw Error(ErrorCode::invalid_argument, "there is no such command", arguments.command,
                unknown_name_hint(arguments.command, names));
  }
  fmt::print("{}", manual_page(text, *command, SUPERSTEP_VERSION));
}

}  // namespace

void declare_completion(CLI::App& command) {
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.footer(completion_examples);
  command.callback([shell, &command] { complete(*command.get_parent(), *shell); });
}

void declare_man(CLI::App& command) {
  const auto arguments = std::make_shared<ManArguments>();
  command.add_option("command", arguments->command, "the command to explain (default: the program itself)");
  command.add_option("--out", arguments->out, "write the pages of all commands to this folder")
      ->type_name("DIR");
  command.footer(man_examples);
  command.callback([arguments, &command] { show_manual(*command.get_parent(), *arguments); });
}

}  // namespace superstep::cli
