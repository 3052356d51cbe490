// What a folder of tables says of the predictions: for the terminal, as docs/accuracy.md, as metrics.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/validate/tables/folds.h"

namespace superstep::lab {

struct TablesReport {
  std::size_t rows = 0, understood = 0;
  std::vector<Fold> folds;                                   // beside what the program has
  std::vector<FamilyErrors> families;                        // the last one is all that is understood
  std::vector<std::pair<std::string, std::size_t>> reasons;  // of what is not, most first
};

// Reads, fits and judges; `keep_in`: a folder that what was fitted over all rows is written to, as the
// program has it (machines/rates/). Throws Error (bad_file).
TablesReport report_tables(const std::filesystem::path& folder, const std::vector<Fold>& folds, int threads,
                           const std::filesystem::path& keep_in = {});

// "model,machine". Throws Error (invalid_argument).
std::vector<Fold> folds_from(const std::string& names);

std::string text_of(const TablesReport& report);
std::string page_of(const TablesReport& report);  // Markdown
std::vector<Metric> metrics_of(const TablesReport& report);

}  // namespace superstep::lab
