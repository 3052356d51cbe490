// What a study found: four figures a cell, and what is said of them.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/study/cells.h"
#include "superstep/study/jobs.h"
#include "superstep/study/kept.h"
#include "superstep/study/predicted.h"

namespace superstep::study {

struct Report {
  Study study;
  Cells cells;
  Plan plan;
  std::vector<std::optional<Kept>> kept;              // of each job of the plan
  std::vector<Figure> predicted, measured, executed;  // of each cell
};

// The columns in which the cells differ, in the order of the tables.
std::vector<std::string> varying_columns(const Cells& cells);
// What tells a cell from the others: "gc200, 512".
std::string label_of(const Cells& cells, const Cell& cell, const std::vector<std::string>& varying);

// What a column of counts is called before its number ("stages 4"); null: it is no such column.
const char* count_words(std::string_view column);
std::string metric_words(std::string metric);  // "step time" of step_time

// What the drawing's axis is called: "micro batch", of square products "extent".
std::string axis_words(const Report& report);

// A finding in words a line: of the predictions, the order of machines, how a figure moves along the
// drawing's axis, this computer, the machine model, and what is missing. All of it is computed.
std::vector<std::string> findings_of(const Report& report);

// Two thousand times a number is "2,000", a thousandth "0.001": four digits that count.
std::string number_words(double value);
std::string figure_words(const Figure& figure);  // "1,234 [1,200, 1,300]", "-"

// The page, in HTML, and the same as JSON.
std::string page_of(const Report& report);
nlohmann::json json_of(const Report& report);
// For the terminal.
std::string text_of(const Report& report);

}  // namespace superstep::study
