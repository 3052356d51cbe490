#include "superstep/cli/help/description.h"

#include "superstep/target/target.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

// "TEXT:{f32,bf16}": the words between the braces.
std::vector<std::string> words_in_braces(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.find('}');
  std::vector<std::string> words;
  if (begin == std::string::npos || end == std::string::npos || end < begin) return words;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    words.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

std::vector<std::string> choices_of(const OptionText& option, const std::string& type) {
  std::vector<std::string> words = words_in_braces(type);
  if (words.empty() && option.positional && option.names.front() == "workload")
    for (const workload::Workload& entry : workload::workloads()) words.push_back(entry.name);
  if (words.empty() && option.names.back() == "--on" && option.value == "TARGET")
    words = target::target_names();
  return words;
}

OptionText describe_option(const CLI::Option& option) {
  OptionText text;
  text.positional = option.get_positional();
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (text.names.empty()) text.names.push_back(option.get_name());
  text.required = option.get_required();
  text.takes_value = option.get_items_expected_max() > 0;
  text.repeats = option.get_items_expected_max() > 1;
  const std::string type = text.takes_value ? option.get_type_name() : "";
  text.value = type.substr(0, type.find(':'));
  text.description = option.get_description();
  text.standard = option.get_default_str();
  text.choices = choices_of(text, type);
  return text;
}

CommandText describe_command(const CLI::App& app, const std::string& path) {
  CommandText text{.path = path, .summary = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) text.options.push_back(describe_option(*option));
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_name().empty() && !command->get_group().empty())
      text.commands.push_back(
          describe_command(*command, path.empty() ? command->get_name() : path + " " + command->get_name()));
  return text;
}

}  // namespace

CommandText describe(const CLI::App& program) { return describe_command(program, ""); }

const CommandText* find_command(const CommandText& program, const std::string& path) {
  if (program.path == path) return &program;
  for (const CommandText& command : program.commands)
    if (const CommandText* found = find_command(command, path)) return found;
  return nullptr;
}

}  // namespace superstep::cli
