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
  std::string machine = "cpu";  // id of what was measured or predicted
};

nlohmann::json to_json(const Metric& metric);

// The machine that a backend stands for: its own name where there is such a machine ("gc200"), else "cpu".
std::string machine_of_backend(const std::string& backend);

// Writes the object of the schema "superstep-result/1" to the file named by --json; does nothing without.
void write_result(const CommandResult& result);

}  // namespace superstep::cli
