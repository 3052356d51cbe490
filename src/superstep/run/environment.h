// The record of the machine and the program that every result carries. Unknown fields are null.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace superstep::run {

// host (processor, caches, memory, load), software (kernel, compiler, libraries, settings that matter),
// program (name, version, revision); measurement protocol 1.2. The load is that of the moment of the call.
nlohmann::json environment_record(int threads);

nlohmann::json program_record();  // {"name", "version", "git", "dirty"}
std::string iso_time();           // now, ISO 8601 with the zone

}  // namespace superstep::run
