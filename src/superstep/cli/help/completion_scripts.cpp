// Completion for shells: which words may follow, by command and option.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "superstep/cli/help/description.h"

namespace superstep::cli {
namespace {

std::vector<const CommandText*> all_commands(const CommandText& program) {
  std::vector<const CommandText*> found{&program};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const CommandText& command : found[i]->commands) found.push_back(&command);
  return found;
}

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options)
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// What may stand where no option does: commands, or words of the arguments.
std::vector<std::string> words_of(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& sub : command.commands) words.push_back(last_word(sub.path));
  for (const OptionText& option : command.options)
    if (option.positional) words.insert(words.end(), option.choices.begin(), option.choices.end());
  return words;
}

// "train --data|infer --input": a pattern of `case`.
std::string bash_patterns(const std::vector<const CommandText*>& commands,
                          bool (*wanted)(const OptionText&)) {
  std::string patterns;
  for (const CommandText* command : commands)
    for (const OptionText& option : command->options)
      if (!option.positional && option.takes_value && wanted(option))
        for (const std::string& name : option.names)
          patterns += fmt::format("{}\"{} {}\"", patterns.empty() ? "" : "|", command->path, name);
  return patterns;
}

std::string bash_choices(const std::vector<const CommandText*>& commands) {
  std::string cases;
  for (const CommandText* command : commands)
    for (const OptionText& option : command->options)
      if (!option.positional && !option.choices.empty())
        cases += fmt::format("    \"{} {}\") COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                             command->path, option.names.back(), fmt::join(option.choices, " "));
  return cases;
}

// --- zsh

std::string zsh_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      (result += '\\') += c;
    else
      result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string zsh_action(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  if (option.takes_folder()) return "_files -/";
  return option.takes_file() || option.positional ? "_files" : " ";
}

std::string zsh_specification(const OptionText& option) {
  const std::string value = zsh_escaped(option.value.empty() ? "value" : option.value);
  if (option.positional)
    return fmt::format("    '{}:{}:{}' \\\n", option.repeats ? "*" : "", zsh_escaped(option.names.front()),
                       zsh_action(option));
  std::string text;
  for (const std::string& name : option.names)
    text +=
        fmt::format("    '{}{}[{}]{}' \\\n", option.repeats ? "*" : "", name, zsh_escaped(option.description),
                    option.takes_value ? fmt::format(":{}:{}", value, zsh_action(option)) : "");
  return text;
}

std::string zsh_function(const std::string& path) {
  std::string name = "_superstep" + (path.empty() ? "" : "_" + path);
  std::ranges::replace(name, ' ', '_');
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string zsh_command(const CommandText& command) {
  std::string text = fmt::format("{}() {{\n", zsh_function(command.path));
  if (!command.commands.empty()) text += "  local context state line\n  local -a commands\n";
  text += fmt::format("  _arguments {}\\\n", command.commands.empty() ? "" : "-C ");
  for (const OptionText& option : command.options)
    if (command.commands.empty() || !option.positional) text += zsh_specification(option);
  if (command.commands.empty()) return text + "    && return\n}\n\n";
  text += "    '1: :->command' '*:: :->rest' && return\n  case $state in\n    command)\n      commands=(\n";
  for (const CommandText& sub : command.commands)
    text += fmt::format("        '{}:{}'\n", last_word(sub.path), zsh_escaped(sub.summary));
  text += "      )\n      _describe command commands ;;\n    rest)\n      case $words[1] in\n";
  for (const CommandText& sub : command.commands)
    text += fmt::format("        {}) {} ;;\n", last_word(sub.path), zsh_function(sub.path));
  return text + "      esac ;;\n  esac\n}\n\n";
}

// --- fish

std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text)
    if (c == '\'' || c == '\\')
      (result += '\\') += c;
    else
      result += c == '\n' ? ' ' : c;
  return result + "'";
}

// Where a command's options are offered: behind its own words and no other's.
std::string fish_condition(const CommandText& command) {
  if (command.path.empty()) return "__fish_use_subcommand";
  std::string seen = "__fish_seen_subcommand_from " + command.path;
  if (const std::size_t cut = command.path.rfind(' '); cut != std::string::npos)
    seen = fmt::format("__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}",
                       command.path.substr(0, cut), command.path.substr(cut + 1));
  return seen;
}

std::string fish_option(const CommandText& command, const OptionText& option) {
  std::string text = fmt::format("complete -c superstep -n '{}'", fish_condition(command));
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.choices.empty())
    text += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  else if (option.takes_folder())
    text += " -x -a '(__fish_complete_directories)'";
  else if (option.takes_value)
    text += option.takes_file() ? " -r -F" : " -x";
  return text + fmt::format(" -d {}\n", fish_quoted(option.description));
}

std::string fish_command(const CommandText& command) {
  std::string text;
  const std::string condition = fish_condition(command);
  for (const CommandText& sub : command.commands)
    text += fmt::format("complete -c superstep -n '{}' -f -a {} -d {}\n", condition, last_word(sub.path),
                        fish_quoted(sub.summary));
  for (const OptionText& option : command.options)
    if (!option.positional)
      text += fish_option(command, option);
    else if (!option.choices.empty())
      text += fmt::format("complete -c superstep -n '{}' -f -a {}\n", condition,
                          fish_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  return text;
}

}  // namespace

std::string fish_completion(const CommandText& program) {
  std::string text = "# fish completion for superstep; made by `superstep completion fish`\n";
  for (const CommandText* command : all_commands(program)) text += fish_command(*command);
  return text;
}

std::string bash_completion(const CommandText& program) {
  const auto commands = all_commands(program);
  std::string paths, words, files, folders;
  for (const CommandText* command : commands) {
    if (!command->path.empty()) {
      const std::size_t cut = command->path.rfind(' ');
      const std::string before = cut == std::string::npos ? "" : command->path.substr(0, cut);
      paths +=
          fmt::format("      \"{} {}\") command='{}' ;;\n", before, last_word(command->path), command->path);
    }
    words += fmt::format("    '{}') options='{}' words='{}' ;;\n", command->path,
                         fmt::join(option_names(*command), " "), fmt::join(words_of(*command), " "));
  }
  files = bash_patterns(commands, [](const OptionText& o) { return o.takes_file(); });
  folders = bash_patterns(commands, [](const OptionText& o) { return o.takes_folder(); });
  const std::string others = bash_patterns(commands, [](const OptionText& o) {
    return !o.takes_file() && !o.takes_folder() && o.choices.empty();
  });
  const auto entry = [](const std::string& patterns, const char* action) {
    return patterns.empty() ? std::string() : fmt::format("    {}) {} return ;;\n", patterns, action);
  };
  return "# bash completion for superstep; made by `superstep completion bash`\n"
         "_superstep() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word\n"
         "  local options= words=\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$command $word\" in\n" +
         paths +
         "    esac\n  done\n"
         "  case \"$command $previous\" in\n" +
         entry(files, "COMPREPLY=($(compgen -f -- \"$current\"));") +
         entry(folders, "COMPREPLY=($(compgen -d -- \"$current\"));") + bash_choices(commands) +
         entry(others, "COMPREPLY=();") + "  esac\n  case \"$command\" in\n" + words +
         "  esac\n"
         "  if [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "    if [[ -n $command ]]; then COMPREPLY+=($(compgen -f -- \"$current\")); fi\n"
         "  fi\n}\n"
         "complete -o filenames -F _superstep superstep\n";
}

std::string zsh_completion(const CommandText& program) {
  std::string text =
      "#compdef superstep\n# zsh completion for superstep; made by `superstep completion zsh`\n\n";
  for (const CommandText* command : all_commands(program)) text += zsh_command(*command);
  return text + "_superstep \"$@\"\n";
}

}  // namespace superstep::cli
