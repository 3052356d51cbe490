#include "superstep/run/environment.h"

#include <nlohmann/json.hpp>

#include "superstep/record/environment.h"
#include "superstep/target/pjrt/pjrt.h"

namespace superstep::run {

nlohmann::json devices_of(std::string_view target) {
  nlohmann::json devices = nlohmann::json::array();
  for (const target::pjrt::DeviceFacts& device : target::pjrt::devices_in_use(target))
    devices.push_back({{"name", device.name},
                       {"kind", device.kind},
                       {"memory_bytes", device.memory_bytes > 0 ? nlohmann::json(device.memory_bytes)
                                                                : nlohmann::json(nullptr)},
                       {"plug_in", device.plugin},
                       {"interface", device.versions},
                       {"platform", device.platform},
                       {"platform_version", device.platform_version}});
  return devices;
}

nlohmann::json environment_of(std::string_view target, int threads, const record::HostLoad* load) {
  nlohmann::json environment = record::environment_record(threads, load);
  environment["device"] = devices_of(target);
  return environment;
}

}  // namespace superstep::run
