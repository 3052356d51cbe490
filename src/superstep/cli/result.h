// What `--json FILE` writes: one object that says what was done, with what, and what came out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::cli {

struct CommandResult {
  std::string command;   // "generate"
  std::string workload;  // its id
  nlohmann::json config;
  std::vector<Metric> metrics;
};

nlohmann::json to_json(const Metric& metric);

// Writes the object of the schema "superstep-result/1" to the file named by --json; does nothing without.
void write_result(const CommandResult& result);

}  // namespace superstep::cli
