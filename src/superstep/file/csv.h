// Tables of text, one row a line: CSV (comma) and TSV (tab), as RFC 4180 describes them.
//
// The first row names the columns. Cells that hold a separator, a quote or a line break are quoted, quotes
// inside are doubled. Reading accepts LF and CRLF, a UTF-8 byte-order mark and blank lines, and refuses what
// is damaged (a row of another length, an open quote, text where a number is asked for) with file and line.
// Both directions stream: memory does not grow with the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::data {

// Tab for .tsv, .tab and .txt, comma for everything else.
char separator_of(const std::filesystem::path& path);

class CsvReader {
 public:
  // Opens the file and reads the header. `separator` 0: by the extension. Throws Error (not_found, bad_file).
  explicit CsvReader(std::filesystem::path path, char separator = 0);

  const std::vector<std::string>& header() const { return header_; }
  bool has_column(std::string_view name) const;
  // The position of a named column; throws Error (bad_file) with the nearest name.
  std::size_t column(std::string_view name) const;

  // Steps to the next row; false at the end. Throws Error (bad_file) on a damaged row.
  bool next();
  const std::vector<std::string>& cells() const { return cells_; }  // of the current row
  const std::string& text(std::size_t column) const { return cells_[column]; }
  // Throw Error (bad_file) with file, line and column when the cell is not of that kind.
  double number(std::size_t column) const;  // "nan" and "inf" are numbers, an empty cell is not
  std::int64_t integer(std::size_t column) const;
  std::size_t line() const { return first_line_; }  // where the current row begins, from 1

 private:
  bool read_record(std::vector<std::string>& cells);
  void require_length(std::size_t bytes) const;
  void read_quoted(std::string& cell);
  [[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) const;

  std::filesystem::path path_;
  std::ifstream stream_;
  char separator_;
  std::vector<std::string> header_, cells_;
  std::size_t line_ = 1, first_line_ = 1;
};

// Writes to a temporary file beside `path`; close() puts it in place. A writer destroyed before close()
// leaves nothing behind.
class CsvWriter {
 public:
  CsvWriter(std::filesystem::path path, const std::vector<std::string>& header, char separator = 0);
  ~CsvWriter();
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  CsvWriter& cell(std::string_view text);
  CsvWriter& cell(const char* text) { return cell(std::string_view(text)); }
  CsvWriter& cell(double value);  // the shortest text that reads back as the same number
  CsvWriter& cell(float value);
  CsvWriter& cell(std::int64_t value);
  CsvWriter& cell(int value) { return cell(std::int64_t{value}); }
  // Ends the row; throws Error (internal) when it has another number of cells than the header.
  void end_row();

  void close();  // flushes and renames; throws Error (io)

 private:
  CsvWriter& append(std::string_view text);

  std::filesystem::path path_, partial_;
  std::ofstream stream_;
  char separator_;
  std::size_t columns_, in_row_ = 0;
  bool closed_ = false;
};

}  // namespace superstep::data
