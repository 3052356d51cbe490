// Descriptions of commands on their way from one program to another (cli/wing.h).
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "superstep/cli/help/description.h"

namespace superstep::cli {

nlohmann::json to_json(const std::vector<CommandText>& commands);
// Of what to_json() made; nothing of a value that is something else.
std::vector<CommandText> commands_from_json(const nlohmann::json& json);

}  // namespace superstep::cli
