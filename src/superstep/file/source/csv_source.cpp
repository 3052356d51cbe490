// Tables of text: where the rows begin is found when the file is opened, and a row is read when it is wanted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_forms.h"

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

// Tables of some countries have semicolons, their commas being decimal points.
char separator_in(const std::filesystem::path& path) {
  const char usual = separator_of(path);
  const CsvReader reader(path, usual);
  const auto& header = reader.header();
  return header.size() == 1 && header[0].find(';') != std::string::npos ? ';' : usual;
}

// NAME followed by a number from 0 or 1 on: "x0", "x_0", "x.0", "x[0]".
std::optional<std::int64_t> number_behind(std::string_view column, std::string_view name) {
  if (!column.starts_with(name)) return std::nullopt;
  std::string_view rest = column.substr(name.size());
  if (rest.starts_with('[') && rest.ends_with(']'))
    rest = rest.substr(1, rest.size() - 2);
  else if (rest.starts_with('_') || rest.starts_with('.'))
    rest.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (rest.empty() || error != std::errc() || end != rest.data() + rest.size() || value < 0)
    return std::nullopt;
  return value;
}

class CsvSource : public SampleSource {
 public:
  CsvSource(const std::filesystem::path& path, const SourceRequest& request)
      : file_(path), separator_(separator_in(path)), header_(CsvReader(path, separator_).header()) {
    if (std::ranges::all_of(header_, [](const std::string& name) { return number_of(name).has_value(); }))
      throw Error(ErrorCode::bad_file, "begins with a row of numbers", path.string(),
                  "the first line must name the columns");
    index();
    if (begins_.size() < 2) throw Error(ErrorCode::bad_file, "has no row below its header", path.string());
    find_arrays(request);
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  std::vector<std::string> others() const override { return others_; }
  std::vector<std::string> notes() const override { return notes_; }

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
    std::string_view own = text.substr(begins_[at] - first, begins_[at + 1] - begins_[at]);
    while (own.ends_with('\n') || own.ends_with('\r')) own.remove_suffix(1);
    return own;
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
    Progress progress = Progress::passing("looking for rows", static_cast<double>(file_.size()), "bytes");
    InterruptCheck stop;
    std::string bytes;
    enum class In : std::uint8_t { beginning, cell, quotes, behind_quotes } in = In::beginning;
    bool blank = true;
    std::uint64_t begin = 0;
    const auto end_row = [&](std::uint64_t end) {
      if (end - begin > longest_row)
        throw Error(ErrorCode::bad_file, "has a row of more than 64 MB", file_.path().string(),
                    "is it a table at all?");
      if (!blank) begins_.push_back(begin);
      begin = end;
      blank = true;
    };
    for (std::uint64_t at = 0; at < file_.size(); at += bytes.size()) {
      bytes.resize(std::min<std::uint64_t>(piece, file_.size() - at));
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
      progress.update(static_cast<double>(at));
      stop.throw_if_due(file_.path().string());
    }
    if (in == In::quotes)
      throw Error(ErrorCode::bad_file, "a quoted cell is not closed before the end of the file",
                  file_.path().string());
    end_row(file_.size());
    begins_.push_back(file_.size());
    begins_.erase(begins_.begin());  // the header's
    file_.require_unchanged();
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

  // Arrays that are wanted out of their columns, then a column each.
  void find_arrays(const SourceRequest& request) {
    const std::vector<bool> numeric = numeric_columns();
    std::vector<bool> taken(header_.size(), false);
    const auto take = [&](const SourceArray& wanted, std::vector<std::size_t> columns) {
      for (const std::size_t column : columns) taken[column] = true;
      add(wanted.name, wanted.row, std::move(columns));
    };
    std::vector<const SourceArray*> left;
    for (const SourceArray& wanted : request.wanted) {
      std::vector<std::size_t> columns = columns_named(wanted, numeric);
      if (columns.empty())
        left.push_back(&wanted);
      else
        take(wanted, std::move(columns));
    }
    take_the_rest(left, numeric, taken, take);
    for (std::size_t column = 0; column < header_.size(); ++column) {
      if (!numeric[column]) others_.push_back(fmt::format("'{}' (text)", printable(header_[column])));
      if (numeric[column] && !taken[column]) add(header_[column], Shape{}, {column});
    }
    if (arrays_.empty()) throw Error(ErrorCode::bad_file, "has no column of numbers", file_.path().string());
  }

  std::vector<std::size_t> columns_named(const SourceArray& wanted, const std::vector<bool>& numeric) const {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, wanted.row.element_count()));
    std::vector<std::pair<std::int64_t, std::size_t>> numbered;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (!numeric[i]) continue;
      if (header_[i] == wanted.name && count == 1) return {i};
      if (const auto number = number_behind(header_[i], wanted.name)) numbered.emplace_back(*number, i);
    }
    std::ranges::sort(numbered);
    if (count < 2 || numbered.size() != count || numbered[0].first > 1) return {};
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < count; ++i) {
      if (numbered[i].first != numbered[0].first + static_cast<std::int64_t>(i)) return {};
      columns.push_back(numbered[i].second);
    }
    return columns;
  }

  // The only input that no column is named after takes the columns that are left, where they are as many.
  template <class Take>
  void take_the_rest(const std::vector<const SourceArray*>& left, const std::vector<bool>& numeric,
                     const std::vector<bool>& taken, const Take& take) {
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < header_.size(); ++i)
      if (numeric[i] && !taken[i]) columns.push_back(i);
    if (left.size() != 1 || columns.empty() || !is_floating(left[0]->type) ||
        left[0]->row.element_count() != static_cast<std::int64_t>(columns.size()))
      return;
    std::vector<std::string> names;
    for (const std::size_t column : columns) names.push_back(printable(header_[column]));
    notes_.push_back(
        fmt::format("'{}' is made of the columns {}", printable(left[0]->name), fmt::join(names, ", ")));
    take(*left[0], std::move(columns));
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

  StableFile file_;
  char separator_;
  std::vector<std::string> header_;
  std::vector<std::uint64_t> begins_;  // of the rows, and the end
  std::vector<SourceArray> arrays_;
  std::vector<std::vector<std::size_t>> columns_;  // by array
  std::vector<std::string> others_, notes_;
};

}  // namespace

bool is_csv(const std::filesystem::path& path) {
  return ends_in(path, {".csv", ".tsv", ".tab"}) && is_text(path, {".csv", ".tsv", ".tab"});
}

std::unique_ptr<SampleSource> open_csv_source(const std::filesystem::path& path,
                                              const SourceRequest& request) {
  return std::make_unique<CsvSource>(path, request);
}

}  // namespace superstep::data
