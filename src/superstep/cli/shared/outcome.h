// What commands of the laboratory do with their results: complete them, keep them in the records, write and
// show them.
#pragma once

#include <string>
#include <vector>

#include "superstep/lab/formats/result.h"
#include "superstep/lab/formats/table.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/run/host_load.h"

namespace superstep::cli {

struct OutputChoice {
  std::string format = "text";  // of what is shown
  std::string file;             // empty: standard output
  bool record = true;           // keep the results in the records
};

// The first half of finish_results: all but showing them.
void keep_results(std::vector<lab::Result>& results, const run::HostLoad& load, bool record = true);

// Adds the environment (one for all, with how busy the machine was since `load` began), keeps the results in
// the records, writes --json, and shows them.
void finish_results(std::vector<lab::Result>& results, const run::HostLoad& load, const OutputChoice& output);

}  // namespace superstep::cli
