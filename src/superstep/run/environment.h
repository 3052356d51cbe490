// The environment of what was done on a target: the record of the machine and the program, and where the
// target is a device behind a plug-in, that device.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "superstep/record/host_load.h"

namespace superstep::run {

// As record::environment_record(), with the member "device" filled: name, kind, plug-in, versions.
nlohmann::json environment_of(std::string_view target, int threads, const record::HostLoad* load = nullptr);

// The devices that this process has compiled for under the name of that target; empty where it is of another
// kind, or was not used.
nlohmann::json devices_of(std::string_view target);

}  // namespace superstep::run
