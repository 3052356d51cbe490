// Tables of text: where the rows begin is found when the file is opened, and a row is read when it is wanted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/packing/content.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/column_arrays.h"

namespace superstep::data {
namespace {

constexpr std::size_t piece = 1 << 20;                          // read at a time
constexpr std::uint64_t longest_row = std::uint64_t{64} << 20;  // as csv.h has it

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<double> number_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A whole number that a double rounds: an identifier, which would become another one.
bool is_rounded(std::string_view text, double value) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  return std::abs(value) >= exact && trimmed(text).find_first_of(".eEnN") == std::string_view::npos;
}

// The cells of one row, without its line end; quotes inside of quotes are doubled.
void split_row(std::string_view row, char separator, std::vector<std::string>& cells) {
  std::size_t count = 0;
  const auto fresh = [&]() -> std::string& {
    if (count == cells.size()) cells.emplace_back();
    cells[count].clear();
    return cells[count++];
  };
  std::string* cell = &fresh();
  bool quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const char c = row[i];
    if (quoted && c == '"' && i + 1 < row.size() && row[i + 1] == '"')
      cell->push_back(row[++i]);
    else if (c == '"' && (quoted || cell->empty()))
      quoted = !quoted;
    else if (c == separator && !quoted)
      cell = &fresh();
    else
      cell->push_back(c);
  }
  cells.resize(count);
}

// Without what may follow the last cell.
std::string_view without_end(std::string_view row) {
  while (row.ends_with('\n') || row.ends_with('\r')) row.remove_suffix(1);
  return row;
}

class CsvSource : public SampleSource {
 public:
  CsvSource(const std::filesystem::path& path, const SourceRequest& request)
      : file_(path), separator_(separator_of(unpacked_name(path))) {
    index();
    read_header();
    if (std::ranges::all_of(header_, [](const std::string& name) { return number_of(name).has_value(); }))
      throw Error(ErrorCode::bad_file, "begins with a row of numbers", path.string(),
                  "the first line must name the columns");
    if (begins_.size() < 2) throw Error(ErrorCode::bad_file, "has no row below its header", path.string());
    find_arrays(request);
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  std::vector<std::string> others() const override { return others_; }
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::int64_t> shards() const override {
    return file_.is_ordered() ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{};
  }

  std::string place(std::size_t array, std::int64_t row) const override {
    return fmt::format("{}: row {}, {}", file_.path().string(), row + 1, words_of(array));
  }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    std::string text;
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < rows.size();) {
      const std::size_t end = end_of_run(rows, i);
      const std::uint64_t first = begins_[static_cast<std::size_t>(rows[i])];
      text.resize(begins_[static_cast<std::size_t>(rows[end - 1]) + 1] - first);
      file_.read(first, std::as_writable_bytes(std::span(text)));
      for (; i < end; ++i) {
        split_row(text_of(text, first, rows[i]), separator_, cells);
        for (const RowsTo& one : wanted)
          put(cells, rows[i], one.array, one.to + i * arrays_[one.array].row_bytes());
      }
    }
    file_.require_unchanged();
  }

 private:
  // Rows that follow one another in the file are read at once.
  std::size_t end_of_run(std::span<const std::int64_t> rows, std::size_t i) const {
    const std::uint64_t first = begins_[static_cast<std::size_t>(rows[i])];
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1 &&
           begins_[static_cast<std::size_t>(rows[end]) + 1] - first <= piece)
      ++end;
    return end;
  }

  // Of a text that begins at `first` in the file; blank lines may lie behind it.
  std::string_view text_of(std::string_view text, std::uint64_t first, std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    return without_end(text.substr(begins_[at] - first, begins_[at + 1] - begins_[at]));
  }

  void put(const std::vector<std::string>& cells, std::int64_t row, std::size_t array, std::byte* to) const {
    if (cells.size() != header_.size())
      throw Error(ErrorCode::bad_file,
                  fmt::format("has {} cells, the header {}", cells.size(), header_.size()),
                  fmt::format("{}: row {}", file_.path().string(), row + 1));
    for (const std::size_t column : columns_[array]) {
      const std::optional<double> value = number_of(cells[column]);
      if (!value || is_rounded(cells[column], *value))
        throw Error(
            ErrorCode::bad_file,
            fmt::format("column '{}' holds '{}', {}", printable(header_[column]), printable(cells[column]),
                        value ? "a whole number beyond 2^53" : "which is not a number"),
            fmt::format("{}: row {}", file_.path().string(), row + 1));
      std::memcpy(to, &*value, sizeof *value);
      to += sizeof *value;
    }
  }

  // Where each row begins, and where the last one ends; a line end in quotes ends no row.
  void index() {
    Progress progress = Progress::passing("looking for rows", file_.stored_bytes(), "bytes");
    InterruptCheck stop;
    std::string bytes;
    enum class In : std::uint8_t { beginning, cell, quotes, behind_quotes } in = In::beginning;
    bool blank = true;
    std::uint64_t begin = 0;
    const auto require_short = [&](std::uint64_t end) {
      if (end - begin > longest_row)
        throw Error(ErrorCode::bad_file, "has a row of more than 64 MB", file_.path().string(),
                    "is it a table at all?");
    };
    const auto end_row = [&](std::uint64_t end) {
      require_short(end);
      if (!blank) begins_.push_back(begin);
      begin = end;
      blank = true;
    };
    for (std::uint64_t at = 0; file_.has(at, 1); at += bytes.size()) {
      bytes.resize(file_.has(at, piece) ? piece : static_cast<std::size_t>(file_.size() - at));
      file_.read(at, std::as_writable_bytes(std::span(bytes)));
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const char c = bytes[i];
        if (c != '\n' && c != '\r') blank = false;
        if (c == '"' && in != In::cell)
          in = in == In::quotes ? In::behind_quotes : In::quotes;
        else if (in != In::quotes)
          in = c == separator_ || c == '\n' ? In::beginning : In::cell;
        if (c == '\n' && in != In::quotes) end_row(at + i + 1);
      }
      require_short(at + bytes.size());  // a file without line ends is refused long before its end
      progress.update(file_.stored_position(at));
      stop.throw_if_due(file_.path().string());
    }
    if (in == In::quotes)
      throw Error(ErrorCode::bad_file, "a quoted cell is not closed before the end of the file",
                  file_.path().string());
    end_row(file_.size());
    begins_.push_back(file_.size());
    file_.require_unchanged();
  }

  // The first row, behind the mark that some editors begin a file with. Tables of some countries have
  // semicolons, their commas being decimal points.
  void read_header() {
    if (begins_.size() < 2)
      throw Error(ErrorCode::bad_file, "the table is empty", file_.path().string() + ":1",
                  "the first line must name the columns");
    std::string text(begins_[1] - begins_[0], '\0');
    file_.read(begins_[0], std::as_writable_bytes(std::span(text)));
    std::string_view row = without_end(text);
    if (constexpr std::string_view mark = "\xef\xbb\xbf"; row.starts_with(mark))
      row.remove_prefix(mark.size());
    split_row(row, separator_, header_);
    const bool semicolons = header_.size() == 1 && header_[0].find(';') != std::string::npos;
    if (semicolons && separator_ != ';') {
      separator_ = ';';
      begins_.clear();
      index();  // where quotes open a cell depends on what stands before them
      return read_header();
    }
    begins_.erase(begins_.begin());
  }

  std::vector<bool> numeric_columns() const {
    constexpr std::size_t looked_at = 100;  // rows: chosen; a text behind them is an error of its row
    std::vector<bool> numeric(header_.size(), true);
    std::vector<std::string> cells;
    for (std::size_t row = 0; row < std::min(looked_at, begins_.size() - 1); ++row) {
      std::string text(begins_[row + 1] - begins_[row], '\0');
      file_.read(begins_[row], std::as_writable_bytes(std::span(text)));
      split_row(text_of(text, begins_[row], static_cast<std::int64_t>(row)), separator_, cells);
      for (std::size_t i = 0; i < std::min(cells.size(), numeric.size()); ++i)
        if (!trimmed(cells[i]).empty() && !number_of(cells[i])) numeric[i] = false;
    }
    return numeric;
  }

  void find_arrays(const SourceRequest& request) {
    const std::vector<bool> numeric = numeric_columns();
    ColumnArrays made = arrays_of_columns(header_, numeric, request.wanted);
    notes_ = std::move(made.notes);
    for (ColumnArray& array : made.arrays) add(array.name, array.row, std::move(array.columns));
    for (std::size_t column = 0; column < header_.size(); ++column)
      if (!numeric[column]) others_.push_back(fmt::format("'{}' (text)", printable(header_[column])));
    if (arrays_.empty()) throw Error(ErrorCode::bad_file, "has no column of numbers", file_.path().string());
  }

  void add(const std::string& name, const Shape& row, std::vector<std::size_t> columns) {
    arrays_.push_back({.name = name,
                       .type = ElementType::f64,
                       .row = row,
                       .rows = static_cast<std::int64_t>(begins_.size()) - 1});
    columns_.push_back(std::move(columns));
  }

  std::string words_of(std::size_t array) const {
    const auto& columns = columns_[array];
    return columns.size() == 1 ? fmt::format("column '{}'", printable(header_[columns[0]]))
                               : fmt::format("columns '{}' to '{}'", printable(header_[columns.front()]),
                                             printable(header_[columns.back()]));
  }

  Content file_;
  char separator_;
  std::vector<std::string> header_;
  std::vector<std::uint64_t> begins_;  // of the rows, and the end
  std::vector<SourceArray> arrays_;
  std::vector<std::vector<std::size_t>> columns_;  // by array
  std::vector<std::string> others_, notes_;
};

}  // namespace

bool is_csv(const std::filesystem::path& path) {
  return ends_in(unpacked_name(path), {".csv", ".tsv", ".tab"}) && holds_text(path, {".csv", ".tsv", ".tab"});
}

std::unique_ptr<SampleSource> open_csv_source(const std::filesystem::path& path,
                                              const SourceRequest& request) {
  return std::make_unique<CsvSource>(path, request);
}

}  // namespace superstep::data
