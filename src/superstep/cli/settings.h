// "--set name=value" and the list of what can be set, as `generate` and `baseline` have them.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "superstep/base/options.h"
#include "superstep/base/text.h"

namespace superstep::cli {

// The options as a table: name, default, meaning.
inline void print_options(std::span<const OptionSpec> options) {
  if (options.empty()) return fmt::print("  it has no options\n");
  TextTable table({"--set", "default", "meaning"});
  for (const OptionSpec& option : options) table.add_row({option.name, option.default_value, option.help});
  fmt::print("{}", table.to_string());
}

// Where what was asked for goes by another name now.
inline void tell_former_name(const std::string& asked, const std::string& name) {
  if (asked != name) fmt::print(stderr, "superstep: note: '{}' is called '{}' now\n", asked, name);
}

inline nlohmann::json to_json(const Options& options) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : options.all()) object[name] = value;
  return object;
}

}  // namespace superstep::cli
