// Generated samples as rows of text (CSV or TSV), for workloads whose users keep tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

// Does the path end in .csv, .tsv, .tab or .txt?
bool is_table_path(const std::filesystem::path& path);

// Writes the samples of the request, one row each, made on every thread in chunks and written in order; what
// is written does not depend on the number of threads. `row` makes the cells of one sample and must be
// thread-safe. Throws Error (interrupted) on Ctrl-C; a file cut short is removed.
void write_rows(const WriteRequest& request, const std::vector<std::string>& header,
                FunctionRef<std::vector<std::string>(std::uint64_t index)> row);

// The shortest text that reads back as the same number.
std::string number_text(double value);
std::string number_text(float value);

}  // namespace superstep::data
