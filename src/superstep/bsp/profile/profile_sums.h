// Sums over a profile that more than one of its reports needs.
#pragma once

#include <map>
#include <string>

#include "superstep/bsp/profile/profile.h"

namespace superstep::bsp {

struct MemorySums {
  std::uint64_t excluding_gaps = 0, including_gaps = 0, always_live = 0, not_always_live = 0;
  std::uint64_t max_excluding_gaps = 0, max_including_gaps = 0;
  std::size_t fullest_tile = 0;
  TileMemory by_category;  // of all tiles
};
MemorySums sum_memory(const CompilationProfile& compilation);

struct VertexCycles {
  std::uint64_t instances = 0;  // of the graph
  std::uint64_t cycles = 0;     // of worker threads, over all that ran
};

struct ExecutionSums {
  std::uint64_t compute_all = 0, compute_busy = 0, exchange = 0, exchanged_bytes = 0, link_bytes = 0,
                host_bytes = 0,
                flops = 0;  // over all tiles and steps that ran
  std::map<std::string, VertexCycles> vertices;
};
ExecutionSums sum_execution(const Profile& profile);

// Bytes of one category of a tile's memory, with its name for people.
struct MemoryCategory {
  const char* name;
  const char* key;  // in JSON
  std::uint64_t TileMemory::*bytes;
};
inline constexpr MemoryCategory memory_categories[] = {
    {"variables", "variables", &TileMemory::variables},
    {"constants", "constants", &TileMemory::constants},
    {"vertex state", "vertexState", &TileMemory::vertex_state},
    {"vertex code", "vertexCode", &TileMemory::vertex_code},
    {"exchange code", "exchangeCode", &TileMemory::exchange_code},
    {"control code", "controlCode", &TileMemory::control_code},
    {"run-time library, stacks", "runtime", &TileMemory::runtime},
    {"host buffers", "hostBuffers", &TileMemory::host_buffers},
    {"not always live", "notAlwaysLive", &TileMemory::not_always_live},
    {"gaps", "gaps", &TileMemory::gaps},
};

}  // namespace superstep::bsp
