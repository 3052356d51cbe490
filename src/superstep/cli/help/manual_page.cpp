// Manual pages in roff, with the macros of man(7).
#include <fmt/format.h>

#include <algorithm>

#include "superstep/cli/help/description.h"

namespace superstep::cli {
namespace {

// Text that no formatter may read as a request or an escape; hyphens stay hyphens.
std::string escaped(const std::string& text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    line_begins = c == '\n';
  }
  return result;
}

std::string dashed(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path.empty() ? "superstep" : "superstep-" + path;
}

std::string full_name(const CommandText& command) {
  return command.path.empty() ? "superstep" : "superstep " + command.path;
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string synopsis(const CommandText& command) {
  std::string line = fmt::format(".B {}\n", escaped(full_name(command)));
  for (const OptionText& option : command.options)
    if (option.positional)
      line += option.required ? fmt::format(".I {}\n", escaped(option.names.front()))
                              : fmt::format("[\\fI{}\\fR]\n", escaped(option.names.front()));
  line += "[\\fIOPTIONS\\fR]\n";
  if (!command.commands.empty()) line += ".I COMMAND\n";
  return line;
}

std::string option_entry(const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(name));
  if (option.takes_value && !option.positional && !option.value.empty())
    names += fmt::format(" \\fI{}\\fR", escaped(option.value));
  std::string text = escaped(option.description);
  if (!option.standard.empty()) text += fmt::format(" [{}]", escaped(option.standard));
  if (option.required) text += " (required)";
  return fmt::format(".TP\n{}\n{}\n", names, text.empty() ? "\\&" : text);
}

std::string option_entries(const CommandText& command, bool positional) {
  std::string text;
  for (const OptionText& option : command.options)
    if (option.positional == positional) text += option_entry(option);
  return text;
}

std::string section(const char* title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

std::string command_entries(const CommandText& command) {
  std::string text;
  for (const CommandText& sub : command.commands)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(sub.path), escaped(sub.summary));
  return text;
}

// Commands within commands ("onnx check") stand on the page of the command.
std::string inner_commands(const CommandText& command) {
  std::string text;
  for (const CommandText& sub : command.commands) {
    text += fmt::format(".SS {}\n{}\n", escaped(full_name(sub)), escaped(sub.summary));
    text += option_entries(sub, true) + option_entries(sub, false);
    if (!sub.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(sub.footer));
  }
  return text;
}

std::string see_also(const CommandText& program, const CommandText& command) {
  std::string text;
  const auto add = [&](const std::string& page) {
    text += fmt::format("{}\\fB{}\\fR(1)", text.empty() ? "" : ", ", escaped(page));
  };
  if (!command.path.empty()) add("superstep");
  if (command.path.empty())
    for (const CommandText& sub : program.commands) add(dashed(sub.path));
  return text + "\n";
}

}  // namespace

std::string manual_page(const CommandText& program, const CommandText& command, const std::string& version) {
  const std::string name = dashed(command.path);
  const bool whole = command.path.empty();
  std::string page =
      fmt::format(".TH \"{}\" 1 \"\" \"superstep {}\" \"Superstep\"\n", upper(escaped(name)), version);
  page += section("NAME", fmt::format("{} \\- {}\n", escaped(name), escaped(command.summary)));
  page += section("SYNOPSIS", synopsis(command));
  page += section("ARGUMENTS", option_entries(command, true));
  page += section("COMMANDS", whole ? command_entries(command) : inner_commands(command));
  page += section("OPTIONS", option_entries(command, false));
  if (!command.footer.empty())
    page += section(whole ? "NOTES" : "EXAMPLES", fmt::format(".nf\n{}\n.fi\n", escaped(command.footer)));
  page += section("EXIT STATUS",
                  ".TP\n0\nthe work is done\n.TP\n1\nthe work failed\n.TP\n2\nthe call was wrong\n"
                  ".TP\n130\nthe work was stopped, by Ctrl\\-C or a signal\n");
  return page + section("SEE ALSO", see_also(program, command));
}

}  // namespace superstep::cli
