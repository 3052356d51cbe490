#include "superstep/data/row_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/data/csv.h"

namespace superstep::data {

bool is_table_path(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".csv" || extension == ".tsv" || extension == ".tab" || extension == ".txt";
}

void write_rows(const WriteRequest& request, const std::vector<std::string>& header,
                FunctionRef<std::vector<std::string>(std::uint64_t index)> row) {
  constexpr std::uint64_t chunk = 1024;
  CsvWriter file(request.path, header);
  Progress progress(request.path.filename().string(), static_cast<double>(request.samples), "samples");
  for (std::uint64_t first = 0; first < request.samples; first += chunk) {
    if (interrupted())
      throw Error(ErrorCode::interrupted, "stopped before the file was whole", request.path.string());
    std::vector<std::vector<std::string>> rows(std::min(chunk, request.samples - first));
    request.pool->parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t item, int) {
      rows[static_cast<std::size_t>(item)] = row(first + static_cast<std::uint64_t>(item));
    });
    for (const auto& cells : rows) {
      for (const std::string& cell : cells) file.cell(cell);
      file.end_row();
    }
    progress.update(static_cast<double>(first + rows.size()));
  }
  file.close();
}

std::string number_text(double value) { return fmt::format("{}", value); }
std::string number_text(float value) { return fmt::format("{}", value); }

}  // namespace superstep::data
