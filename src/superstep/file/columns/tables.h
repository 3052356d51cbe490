// The forms that tables are in, column by column.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/columns/column_table.h"

namespace superstep::data::columns {

// Throw Error naming the file: bad_file, unsupported.
std::unique_ptr<ColumnTable> open_parquet_table(const std::filesystem::path& path);
// Arrow's files (Feather, version 2) and streams.
std::unique_ptr<ColumnTable> open_arrow_table(const std::filesystem::path& path);

}  // namespace superstep::data::columns
