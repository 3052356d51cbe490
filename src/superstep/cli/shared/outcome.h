// What commands do with their results: complete them, keep them in the records, write --json, and show them.
#pragma once

#include <string>
#include <vector>

#include "superstep/lab/formats/table.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/record/host_load.h"
#include "superstep/record/result.h"

namespace superstep::cli {

// --- of a command that has one result

// With what a command was done and what came of it, on the `cpu` unless `machine` says otherwise.
record::Result command_result(std::string command, std::string workload, nlohmann::json config,
                              const std::vector<Metric>& metrics, std::string machine = "cpu");

// Writes --json, with the time, the program and the environment (that of all the program's threads, unless
// the result has one). Does nothing without --json, and on other ranks than the first.
void write_result(record::Result result);
// Keeps it in the records first.
void keep_and_write_result(record::Result result);

// --- of a command of the laboratory

struct OutputChoice {
  std::string format = "text";  // of what is shown
  std::string file;             // empty: standard output
  bool record = true;           // keep the results in the records
};

// The first half of finish_results: all but showing them.
void keep_results(std::vector<record::Result>& results, const record::HostLoad& load, bool record = true);

// Adds the environment (one for all, with how busy the machine was since `load` began), keeps the results in
// the records, writes --json, and shows them.
void finish_results(std::vector<record::Result>& results, const record::HostLoad& load,
                    const OutputChoice& output);

}  // namespace superstep::cli
