#include "superstep/cli/call/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/run/user/user_model.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

using Words = std::vector<std::string>;

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }
bool asks_for_help(const std::string& word) { return word == "help" || word == "-h" || word == "--help"; }

std::vector<const CLI::App*> commands_of(const CLI::App& group) {
  return group.get_subcommands([](const CLI::App*) { return true; });
}

Words names_of(const std::vector<const CLI::App*>& commands) {
  Words names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

const CLI::App* find_command(const CLI::App& group, const std::string& name) {
  for (const CLI::App* command : commands_of(group))
    if (command->get_name() == name) return command;
  return nullptr;
}

// The command that was being read, and those it belongs to: "records export".
const CLI::App* innermost(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? full_name(*parent) + " " + command.get_name() : command.get_name();
}

std::string see_help(const CLI::App& command) {
  return fmt::format("'{} --help' explains {}", full_name(command),
                     command.get_parent() ? "it" : "what there is");
}

// The long names of options, "--samples", of a command and of those it belongs to.
Words options_of(const CLI::App& command) {
  Words names;
  for (const CLI::App* each = &command; each; each = each->get_parent())
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

bool is_workload(const std::string& name) {
  return std::ranges::any_of(workload::workloads(),
                             [&](const auto& workload) { return workload.name == name; });
}

[[noreturn]] void refuse_command(const std::string& word, const CLI::App& group) {
  const bool top = group.get_parent() == nullptr;
  std::string hint;
  if (top && run::is_model_file(word))
    hint = fmt::format("this is a model file: 'superstep show {}' looks into it", word);
  else if (top && is_workload(word))
    hint = fmt::format("this is a workload: 'superstep train {}', 'superstep infer {}' ...", word, word);
  else if (top && std::filesystem::is_regular_file(word))
    hint = fmt::format("this is a file: 'superstep show {}' looks into it", word);
  else
    hint = unknown_name_hint(word, names_of(commands_of(group)));
  throw Error(ErrorCode::invalid_argument, "there is no such command", printable(word), hint);
}

std::string without_value(const std::string& option) { return option.substr(0, option.find('=')); }

// An option in front of the command: the program itself has but few.
void refuse_unknown_option(const std::string& word, const CLI::App& program) {
  const std::string name = without_value(word);
  const Words known = options_of(program);
  if (std::ranges::find(known, name) != known.end()) return;
  const auto nearest = nearest_name(name, known);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no option '{}' of the program itself", printable(name)),
              full_name(program),
              nearest ? fmt::format("did you mean '{}'?", *nearest)
                      : "options follow the command, as in 'superstep list --quiet'");
}

Error unexpected(const CLI::App& program) {
  const CLI::App& command = *innermost(program);
  const Words left = program.remaining(true);
  const auto option = std::ranges::find_if(left, is_option);
  if (option == left.end()) {
    Words quoted;
    for (const std::string& word : left) quoted.push_back(fmt::format("'{}'", printable(word)));
    return {ErrorCode::invalid_argument,
            fmt::format("{} not expected here: {}",
                        left.size() == 1 ? "this argument is" : "these arguments are", join(quoted, " ")),
            full_name(command), see_help(command)};
  }
  const std::string name = without_value(*option);
  const auto nearest = nearest_name(name, options_of(command));
  return {ErrorCode::invalid_argument, fmt::format("there is no option '{}'", printable(name)),
          full_name(command), nearest ? fmt::format("did you mean '{}'?", *nearest) : see_help(command)};
}

}  // namespace

std::vector<std::string> understood(Words words, const CLI::App& program) {
  if (words.empty()) return {"--help"};
  if (asks_for_help(words[0])) {
    words.erase(words.begin());
    std::erase_if(words, asks_for_help);
    words.emplace_back("--help");
    return words;
  }
  const CLI::App* group = find_command(program, words[0]);
  if (group && words.size() == 1 && group->get_require_subcommand_min() > 0) words.emplace_back("--help");
  return words;
}

void require_known_command(const Words& words, const CLI::App& program) {
  if (is_option(words[0])) return refuse_unknown_option(words[0], program);
  const CLI::App* const command = find_command(program, words[0]);
  if (!command) refuse_command(words[0], program);
  if (commands_of(*command).empty() || words.size() < 2 || is_option(words[1])) return;
  if (!find_command(*command, words[1])) refuse_command(words[1], *command);
}

Error explained(const CLI::ParseError& error, const CLI::App& program) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) || program.remaining_size(true) > 0)
    return unexpected(program);
  const CLI::App& command = *innermost(program);
  return {ErrorCode::invalid_argument, error.what(), full_name(command), see_help(command)};
}

}  // namespace superstep::cli
