// What --help says, as data: commands with their options, walked from the same tables that parse the command
// line. Manual pages and shell completion are made of it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace superstep::cli {

struct OptionText {
  std::vector<std::string> names;  // "-h", "--help"; of an argument without dashes one name without them
  bool positional = false, required = false, takes_value = false, repeats = false;
  std::string value;  // what it takes: "FILE", "N"; empty for a flag
  std::string description, standard;
  std::vector<std::string> choices;  // where it takes one of a few words
  bool takes_file() const { return value.starts_with("FILE") || value.starts_with("PATH"); }
  bool takes_folder() const { return value.starts_with("DIR"); }
};

struct CommandText {
  std::string path;  // "onnx check"; the program itself: empty
  std::string summary, footer;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;
};

CommandText describe(const CLI::App& program);
const CommandText* find_command(const CommandText& program, const std::string& path);  // null: there is none

// The pages and scripts. `version`: of the program.
std::string manual_page(const CommandText& program, const CommandText& command, const std::string& version);
std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);
std::string fish_completion(const CommandText& program);

}  // namespace superstep::cli
