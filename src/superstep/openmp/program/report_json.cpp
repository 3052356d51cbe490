#include "superstep/openmp/program/report_json.h"

#include "superstep/base/file.h"
#include "superstep/base/json.h"

namespace superstep::openmp {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportRow, what, launches, tiles, compute, exchange, sync, host, control,
                                   exchanged_bytes, host_bytes, flops)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportStep, region, what, times, cycles, exchanged_bytes, host_bytes,
                                   tiles)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, device, clock_hz, rows, steps, cycles, fullest_tile_bytes,
                                   bytes_per_tile, programs, runs, captured, replaced)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RegionOutcome, what, dealt, on_one_tile, on_host, checked, reason,
                                   difference)

nlohmann::json json_of(const Report& report) { return nlohmann::json(report); }
nlohmann::json json_of(const RegionOutcome& region) { return nlohmann::json(region); }

ProgramReport read_program_report(const std::filesystem::path& file) {
  try {
    ProgramReport result;
    result.json = parse_json_or_throw(read_text_file(file));
    result.report = result.json.get<Report>();
    result.regions = result.json.at("regions").get<std::vector<RegionOutcome>>();
    return result;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::bad_file, error.what(), file.string(), "run the program again");
  }
}

}  // namespace superstep::openmp
