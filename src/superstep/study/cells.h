// The cells of a study: its published rows and those of its grids, in one table with all published rows,
// whose siblings fill what a row does not say (lab/validate/row_run.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "superstep/lab/validate/table.h"
#include "superstep/study/form.h"

namespace superstep::study {

struct Cell {
  std::size_t row = 0;              // of the table
  std::string key;                  // names it in files: the row's id, or what it says
  std::optional<double> published;  // in the row's unit
  bool predictable = true;          // a row of results that predictions are held against, or of a grid
};

struct Cells {
  lab::PublishedTable table;
  lab::PublishedTable asked;  // the same rows as predictions are asked for: a throughput for one by price
  std::vector<Cell> list;

  const std::string& text(const Cell& cell, std::string_view column) const {
    return table.text(cell.row, column);
  }
  std::int64_t count(const Cell& cell, std::string_view column) const {
    return table.integer(cell.row, column, 0);
  }
  // Where it stands on an axis that is this column: of "workload" the extent of a square product
  // ("gemm_1024"). 0: nowhere.
  std::int64_t position(const Cell& cell, std::string_view column) const;
};

// Throws Error (invalid_argument) for a published row that nobody has, or a user's table that is wrong.
Cells cells_of(const Study& study);

}  // namespace superstep::study
