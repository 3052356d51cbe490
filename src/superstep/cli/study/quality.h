// superstep study quality WORKLOAD: which batch, precision and machine until a quality is reached.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "superstep/study/quality/report.h"

namespace superstep::cli {

struct QualityArguments {
  std::string workload, until, batches = "32,64,128,256", rule = "sqrt";
  std::vector<std::string> precisions = {"f32"}, machines = {"a100-40gb", "gc200", "cs2"}, options, prices;
  std::string units = "1";
  int seeds = 3;
  std::int64_t samples = 0;
  double epochs = 0;
};

// Its options, which `superstep study` has beside its own.
void add_quality_options(CLI::App& command, const std::shared_ptr<QualityArguments>& arguments);
// The prices of --price, by machine. Throws Error (invalid_argument).
std::map<std::string, double> prices_of(const QualityArguments& arguments);
// Throws Error (invalid_argument) for one of them on the command line of another study, but --price.
void refuse_quality_options(const CLI::App& command);

// Trains, writes and tells what there is.
study::QualityReport study_quality(const QualityArguments& arguments, const std::string& out);

}  // namespace superstep::cli
