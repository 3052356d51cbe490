// What those who write tables say about their columns beside them.
#pragma once

#include <span>
#include <string_view>

#include "superstep/file/columns/column_table.h"

namespace superstep::data::columns {

// The names of classes that the package `datasets` keeps under "huggingface", in JSON. What is no such text
// says nothing.
void set_class_names(std::span<TableColumn> columns, std::string_view json);

}  // namespace superstep::data::columns
