// What a translated program's run took, as the file that it leaves behind.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/openmp/offload.h"

namespace superstep::openmp {

struct RegionOutcome {
  std::string what;                                                    // "heat.c:12"
  std::uint64_t dealt = 0, on_one_tile = 0, on_host = 0, checked = 0;  // launches
  std::string reason, difference;
};
struct ProgramReport {
  Report report;
  std::vector<RegionOutcome> regions;
  nlohmann::json json;  // all of it
};

nlohmann::json json_of(const Report& report);
nlohmann::json json_of(const RegionOutcome& region);
// Throws Error (bad_file).
ProgramReport read_program_report(const std::filesystem::path& file);

}  // namespace superstep::openmp
