#include "superstep/physics/row_writer.h"

#include <fmt/format.h>

#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/physics/ordered_samples.h"

namespace superstep::data {

bool is_table_path(const std::filesystem::path& path) {
  return ends_in(path, {".csv", ".tsv", ".tab", ".txt"});
}

void write_rows(const WriteRequest& request, const std::vector<std::string>& header,
                FunctionRef<std::vector<std::string>(std::uint64_t index)> row) {
  CsvWriter file(request.path, header);
  for_samples_in_order(request, row, [&](const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) file.cell(cell);
    file.end_row();
  });
  file.close();
}

std::string number_text(double value) { return fmt::format("{}", value); }
std::string number_text(float value) { return fmt::format("{}", value); }

}  // namespace superstep::data
