// What a folder of tables says of the predictions: for the terminal, as docs/accuracy.md, as metrics.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/validate/tables/folds.h"
#include "superstep/machine/rates/choices.h"

namespace superstep::lab {

struct TablesReport {
  std::size_t rows = 0, understood = 0;
  std::vector<Fold> folds;                                   // beside what the program has
  std::vector<FamilyErrors> families;                        // the last one is all that is understood
  std::vector<std::pair<std::string, std::size_t>> reasons;  // of what is not, most first
  std::vector<machine::Choice> choices;                      // the law of networks beside models of machines
};

struct TablesSettings {
  std::filesystem::path folder;
  std::vector<Fold> folds;
  int threads = 1;
  std::filesystem::path keep_in;  // a folder for what was fitted over all rows, as machines/rates/ has it
  std::filesystem::path rows_in;  // a file for every row with its predictions (CSV)
  bool with_models = false;       // beside those of single machines' models: `choices`, which takes a while
};

// Reads, fits and judges. Throws Error (bad_file).
TablesReport report_tables(const TablesSettings& settings);

// "model,machine". Throws Error (invalid_argument).
std::vector<Fold> folds_from(const std::string& names);

std::string text_of(const TablesReport& report);
std::string page_of(const TablesReport& report);  // Markdown
std::vector<Metric> metrics_of(const TablesReport& report);

}  // namespace superstep::lab
