// Any bytes are either a table or refused with an Error; what is read is written and read again the same.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/file/csv.h"
#include "tests/fuzz/input_file.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows read(const std::filesystem::path& path, char separator) {
  superstep::data::CsvReader reader(path, separator);
  Rows rows{reader.header()};
  while (reader.next()) {
    rows.push_back(reader.cells());
    try {
      reader.number(0);
      reader.integer(reader.header().size() - 1);
    } catch (const superstep::Error&) {
    }
  }
  return rows;
}

// A row of one empty cell is a blank line, which readers pass over; so is one of line breaks alone.
bool can_be_written(const Rows& rows) {
  for (const auto& row : rows)
    if (row.size() == 1 && row[0].empty()) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const char separator = size % 2 == 0 ? ',' : '\t';
  try {
    const Rows rows = read(InputFile(data, size).path(), separator);
    if (!can_be_written(rows)) return 0;
    const InputFile again(data, 0);
    superstep::data::CsvWriter writer(again.path(), rows[0], separator);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      for (const std::string& cell : rows[i]) writer.cell(cell);
      writer.end_row();
    }
    writer.close();
    if (read(again.path(), separator) != rows) std::abort();
  } catch (const superstep::Error&) {
  }
  return 0;
}
