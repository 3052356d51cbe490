// Columns of a table as the arrays that are wanted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/file/source/request.h"

namespace superstep::data {

// One column, or several of one number each side by side.
struct ColumnArray {
  std::string name;
  Shape row;
  std::vector<std::size_t> columns;
};

struct ColumnArrays {
  std::vector<ColumnArray> arrays;
  std::vector<std::string> notes;  // for people
};

// Of columns that are a number a row where `numeric` says so; others are left out. For an array that is
// wanted with several numbers a row, the columns that are named after it and numbered ("x0", "x_1", "x[1]")
// are one; those that are left are, where they are as many as the only wanted array of floating point that
// nothing is named after has. Every other column is an array of its own.
ColumnArrays arrays_of_columns(std::span<const std::string> names, const std::vector<bool>& numeric,
                               std::span<const SourceArray> wanted);

}  // namespace superstep::data
