#include "superstep/cli/help/description_json.h"

namespace superstep::cli {
namespace {

using nlohmann::json;

json to_json(const OptionText& option) {
  return {{"names", option.names},       {"positional", option.positional}, {"required", option.required},
          {"takes", option.takes_value}, {"repeats", option.repeats},       {"value", option.value},
          {"says", option.description},  {"standard", option.standard},     {"choices", option.choices}};
}

OptionText option_from_json(const json& option) {
  return {.names = option.at("names").get<std::vector<std::string>>(),
          .positional = option.at("positional").get<bool>(),
          .required = option.at("required").get<bool>(),
          .takes_value = option.at("takes").get<bool>(),
          .repeats = option.at("repeats").get<bool>(),
          .value = option.at("value").get<std::string>(),
          .description = option.at("says").get<std::string>(),
          .standard = option.at("standard").get<std::string>(),
          .choices = option.at("choices").get<std::vector<std::string>>()};
}

CommandText command_from_json(const json& entry) {
  CommandText command{.path = entry.at("path").get<std::string>(),
                      .summary = entry.at("summary").get<std::string>(),
                      .footer = entry.at("footer").get<std::string>(),
                      .commands = commands_from_json(entry.at("commands"))};
  for (const json& option : entry.at("options")) command.options.push_back(option_from_json(option));
  return command;
}

}  // namespace

json to_json(const std::vector<CommandText>& commands) {
  json all = json::array();
  for (const CommandText& command : commands) {
    json options = json::array();
    for (const OptionText& option : command.options) options.push_back(to_json(option));
    all.push_back({{"path", command.path},
                   {"summary", command.summary},
                   {"footer", command.footer},
                   {"options", options},
                   {"commands", to_json(command.commands)}});
  }
  return all;
}

std::vector<CommandText> commands_from_json(const json& all) {
  std::vector<CommandText> commands;
  try {
    for (const json& entry : all) commands.push_back(command_from_json(entry));
  } catch (const json::exception&) {  // of a program of another version
    commands.clear();
  }
  return commands;
}

}  // namespace superstep::cli
