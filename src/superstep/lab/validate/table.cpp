#include "superstep/lab/validate/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "superstep/base/file.h"
#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

// One record of RFC 4180, from `at` on; leaves `at` behind its line end.
std::vector<std::string> read_record(std::string_view text, std::size_t& at) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char letter = text[at];
    if (quoted) {
      if (letter != '"')
        cells.back() += letter;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        cells.back() += text[++at];
      else
        quoted = false;
    } else if (letter == '"') {
      quoted = true;
    } else if (letter == ',') {
      cells.emplace_back();
    } else if (letter == '\n') {
      ++at;
      return cells;
    } else if (letter != '\r') {
      cells.back() += letter;
    }
  }
  return cells;
}

}  // namespace

PublishedTable::PublishedTable(const std::filesystem::path& path) : where_(path.string()) {
  parse(read_text_file(path));
}

PublishedTable::PublishedTable(std::string_view text, std::string where) : where_(std::move(where)) {
  parse(text);
}

void PublishedTable::parse(std::string_view text) {
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (text[at] == '#' && header_.empty()) {
      at = std::min(text.size(), text.find('\n', at) + 1);
      if (at == 0) at = text.size();
      ++line;
      continue;
    }
    std::vector<std::string> cells = read_record(text, at);
    const std::size_t first = line;
    for (char letter : text.substr(begin, at - begin)) line += letter == '\n' ? 1 : 0;
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (header_.empty()) {
      header_ = std::move(cells);
      continue;
    }
    if (cells.size() != header_.size())
      throw Error(ErrorCode::bad_file,
                  fmt::format("the row has {} cells, the header {}", cells.size(), header_.size()),
                  fmt::format("{}:{}", where_, first));
    rows_.push_back(std::move(cells));
    lines_.push_back(first);
  }
  if (header_.empty()) throw Error(ErrorCode::bad_file, "has no header", where_, "expected CSV");
}

bool PublishedTable::has(std::string_view column) const {
  return std::find(header_.begin(), header_.end(), column) != header_.end();
}

const std::string& PublishedTable::text(std::size_t row, std::string_view column) const {
  static const std::string none;
  for (std::size_t i = 0; i < header_.size(); ++i)
    if (header_[i] == column) return rows_[row][i];
  return none;
}

double PublishedTable::number(std::size_t row, std::string_view column, double otherwise) const {
  const std::string& cell = text(row, column);
  if (cell.empty()) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size())
    throw Error(ErrorCode::bad_file, fmt::format("column {}: '{}' is not a number", column, cell),
                where(row));
  return value;
}

std::int64_t PublishedTable::integer(std::size_t row, std::string_view column, std::int64_t otherwise,
                                     std::int64_t lowest) const {
  const double value = number(row, column, static_cast<double>(otherwise));
  constexpr double largest = 1e15;  // a double has every whole number up to there
  if (value < static_cast<double>(lowest) || value > largest ||
      value != static_cast<double>(static_cast<std::int64_t>(value)))
    throw Error(ErrorCode::bad_file,
                fmt::format("column {}: {} is not a count{}", column, value, lowest > 0 ? " above 0" : ""),
                where(row));
  return static_cast<std::int64_t>(value);
}

std::string PublishedTable::where(std::size_t row) const { return fmt::format("{}:{}", where_, lines_[row]); }

}  // namespace superstep::lab
