// The JSON twin of the table of nccl-tests: the same rows and units (us, GB/s).
#include <nlohmann/json.hpp>

#include "superstep/lab/formats/nccl.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema_version = 3;

Json side(const record::Result& result, const std::string& place) {
  const auto value = [&](const char* what, double scale) -> Json {
    const record::Quantity* found = result.find(place + what);
    return found ? Json(found->value * scale) : Json(nullptr);
  };
  return {{"time", value("_time", 1e6)},
          {"alg_bw", value("_algbw", 1e-9)},
          {"bus_bw", value("_busbw", 1e-9)},
          {"nwrong", value("_wrong", 1)}};
}

Json row_of(const record::Result& result) {
  return {{"size", record::integer_member(result.parameters, "bytes", 0)},
          {"count", record::integer_member(result.parameters, "count", 0)},
          {"type", record::text_member(result.parameters, "type", "float")},
          {"redop", record::text_member(result.parameters, "redop", "sum")},
          {"root", record::integer_member(result.parameters, "root", -1)},
          {"out_of_place", side(result, "out_of_place")},
          {"in_place", side(result, "in_place")},
          {"actual_iterations", record::integer_member(result.config, "iterations", 20)},
          {"experiment_name", record::text_member(result.config, "order", "")}};
}

// A rank is a process on processors: it has no device, and its process number is not kept.
Json devices_of(const record::Result& result) {
  Json devices = Json::array();
  for (std::int64_t rank = 0; rank < result.units; ++rank)
    devices.push_back({{"rank", rank},
                       {"group", 0},
                       {"pid", nullptr},
                       {"hostname", host_name_of(result)},
                       {"device", 0},
                       {"device_hex", nullptr},
                       {"device_info", "processor"}});
  return devices;
}

Json config_of(const std::vector<const record::Result*>& rows) {
  const record::Result& first = *rows.front();
  const NcclRange range = nccl_range(rows);
  return {{"nthreads", 1},
          {"ngpus", 0},
          {"minimum_bytes", range.least},
          {"maximum_bytes", range.most},
          {"step_factor", 2},
          {"warmup_iters", record::integer_member(first.config, "warmup", 1)},
          {"iterations", record::integer_member(first.config, "iterations", 20)},
          {"aggregated_iterations", 1},
          {"validation", 1},
          {"graph", 0},
          {"blocking_collectives", 1},
          {"per_iter_timing", true},
          {"per_iter_skip", 0},
          {"parallel_init", false},
          {"devices", devices_of(first)}};
}

Json arguments_of(const record::Result& result) {
  const auto found = result.config.find("arguments");
  return found != result.config.end() && found->is_array() ? Json(*found) : Json::array();
}

// Those that the environment's record lets through.
Json variables_of(const record::Result& result) {
  return Json(record::object_member(record::object_member(result.environment, "software"), "settings"));
}

}  // namespace

std::string write_nccl_json(const std::vector<record::Result>& results) {
  std::vector<const record::Result*> rows;
  for (const record::Result& result : results)
    if (result.mode == "collective") rows.push_back(&result);
  if (rows.empty()) return {};
  const NcclTotals totals = nccl_totals(rows);
  Json list = Json::array();
  for (const record::Result* row : rows) list.push_back(row_of(*row));
  const Json document{
      {"version", schema_version},
      {"start_time", rows.front()->created},
      {"args", arguments_of(*rows.front())},
      {"env", variables_of(*rows.front())},
      {"nccl_version", 0},
      {"config", config_of(rows)},
      {"results", list},
      {"out_of_bounds", {{"count", static_cast<std::int64_t>(totals.wrong)}, {"okay", totals.wrong == 0}}},
      {"average_bus_bandwidth", {{"bandwidth", totals.bus_bandwidth * 1e-9}, {"okay", true}}},
      {"end_time", rows.back()->created}};
  return document.dump(2) + "\n";
}

}  // namespace superstep::lab
