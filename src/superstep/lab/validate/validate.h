// Predictions beside published numbers: the error of every row, and what the errors are by family.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/validate/table.h"
#include "superstep/machine/machine.h"

namespace superstep::lab {

struct RowResult {
  std::string name, family, quantity, unit;
  std::string subject;  // rows of one subject on different machines can be ranked; empty: of no such row
  double published = 0;
  std::optional<double> predicted;                  // nothing: the row is not covered
  std::string reason;                               // why not; else what bounds it and how it is spread
  double tile_published = 0, tile_predicted = 0;    // bytes of the fullest tile; 0: not given
  double total_published = 0, total_predicted = 0;  // bytes of all tiles; 0: not given
  double low = 0, high = 0;                         // the interval of the prediction; 0: none
  double peak = 0, roofline = 0;                    // the ladder below the prediction; 0: not said
  bool inside() const { return low <= published && published <= high; }
  double width() const;  // a factor: the interval is as wide as the middle times and divided by it
  double error() const { return *predicted / published - 1; }
};

struct ErrorSummary {
  std::string family;
  std::size_t rows = 0, covered = 0, within = 0;  // within 30 %
  double median = 0, p90 = 0, worst = 0;          // of |error|, over covered rows
  double factor = 1;  // 80 % of the covered rows are predicted within it, times or divided
  std::size_t with_interval = 0, inside = 0;  // rows with an interval, and those whose value lies in it
  double median_width = 1;                    // of the intervals, as RowResult::width()
};

// Pairs of rows of one subject on two machines whose published values differ by more than 1.3 times, and how
// many of them the predictions put in the same order.
struct Rankings {
  std::size_t pairs = 0, right = 0;
  std::vector<std::string> wrong;  // "bragg-gc200-512 above bragg-a100-512", as published
};
Rankings rankings_of(const std::vector<RowResult>& rows);

struct Validation {
  std::string file, machine;
  std::vector<RowResult> rows;
  std::vector<ErrorSummary> families;  // the last one is all rows
  std::vector<ErrorSummary> memory;    // of the fullest tile, by family; the last one is all rows
  std::vector<ErrorSummary> total;     // of all tiles
  std::size_t with_interval() const { return families.back().with_interval; }
  std::vector<Metric> metrics() const;
};

struct ValidateOptions {
  std::string
      machine;  // operator rows: the one whose constants are used; empty: by the file's number of tiles
  std::string family;  // only these rows; empty: all
  int threads = 1;
};

// Throws Error (bad_file) when the table is of no known kind.
Validation validate(const PublishedTable& table, const ValidateOptions& options);
Validation validate(const std::filesystem::path& file, const ValidateOptions& options);

// The machine of operator rows with its open constants moved, within their ranges, to where the mean of the
// rows' log errors is least: one after the other, from the values of the machine file.
struct Fit {
  machine::Machine machine;
  double loss_before = 0, loss_after = 0;
};
Fit fit_open_constants(const std::filesystem::path& file, const ValidateOptions& options, int rounds);

}  // namespace superstep::lab
