// The record of the machine and the program that every result carries. Unknown fields are null.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "superstep/record/host_load.h"

namespace superstep::record {

// host (processor, caches, clocks, memory, load), placement (threads, affinity), software (kernel, compiler,
// libraries, settings that matter), program (name, version, revision); measurement protocol 1.2. The load is
// that of the moment of the call; with `load` also how busy the machine was since `load` began.
nlohmann::json environment_record(int threads, const HostLoad* load = nullptr);

// The sizes in bytes of the data caches that one core sees, first level first; 0 where the host does not say.
struct CacheSizes {
  std::size_t level1 = 0, level2 = 0, level3 = 0;
};
CacheSizes cache_sizes();

nlohmann::json program_record();  // {"name", "version", "git", "dirty"}
std::string iso_time();           // now, ISO 8601 with the zone

}  // namespace superstep::record
