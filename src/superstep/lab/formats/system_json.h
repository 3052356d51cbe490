// The description of a system that goes beside a log of MLPerf's form: its 33 members, all of them texts.
// What cannot be found out by a program is for people to give; what nobody knows is empty. Not verified by
// MLCommons.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace superstep::lab {

// `environment`: record/environment.h. `given` replaces what was found; throws Error (invalid_argument) for a
// member that there is not, with the nearest.
std::string write_system_json(const nlohmann::json& environment,
                              const std::map<std::string, std::string>& given);

}  // namespace superstep::lab
