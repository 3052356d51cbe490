#include "superstep/file/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "superstep/base/error.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/base/text.h"
#include "superstep/file/form.h"

namespace superstep::data {
namespace {

using Traits = std::char_traits<char>;

// The whole of `text` as a number, spaces around it allowed.
template <class Number>
bool parse(std::string_view text, Number& value) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void skip_byte_order_mark(std::ifstream& stream) {
  char mark[3] = {};
  stream.read(mark, 3);
  if (stream.gcount() == 3 && std::string_view(mark, 3) == "\xef\xbb\xbf") return;
  stream.clear();
  stream.seekg(0);
}

// Where the rows go until the table is whole; a device or a pipe (/dev/stdout) is written to directly.
std::filesystem::path partial_path(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool special =
      std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  return special ? path : std::filesystem::path(partial_name(path));
}

}  // namespace

char separator_of(const std::filesystem::path& path) {
  return ends_in(path, {".tsv", ".tab", ".txt"}) ? '\t' : ',';
}

CsvReader::CsvReader(std::filesystem::path path, char separator)
    : path_(std::move(path)),
      stream_(open_regular_file(path_)),
      separator_(separator ? separator : separator_of(path_)) {
  skip_byte_order_mark(stream_);
  if (!read_record(header_)) refuse("the table is empty", "the first line must name the columns");
}

void CsvReader::refuse(const std::string& message, const std::string& hint) const {
  throw Error(ErrorCode::bad_file, message, fmt::format("{}:{}", path_.string(), first_line_), hint);
}

bool CsvReader::has_column(std::string_view name) const {
  return std::find(header_.begin(), header_.end(), name) != header_.end();
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto at = std::find(header_.begin(), header_.end(), name);
  if (at == header_.end())
    throw Error(ErrorCode::bad_file, fmt::format("there is no column '{}'", name), path_.string(),
                unknown_name_hint(name, header_));
  return static_cast<std::size_t>(at - header_.begin());
}

bool CsvReader::next() {
  if (!read_record(cells_)) return false;
  if (cells_.size() != header_.size())
    refuse(fmt::format("the row has {} cells, the header {}", cells_.size(), header_.size()));
  return true;
}

// A file without line ends (a sparse one, an image) is no table: said before it fills the memory.
void CsvReader::require_length(std::size_t bytes) const {
  constexpr std::size_t longest_record = std::size_t{64} << 20;  // bytes (chosen)
  if (bytes > longest_record)
    refuse(fmt::format("a row is longer than {} MB", longest_record >> 20), "is it a table at all?");
}

// What follows an opening quote, up to and with the closing one.
void CsvReader::read_quoted(std::string& cell) {
  std::streambuf& in = *stream_.rdbuf();
  for (;;) {
    const int c = in.sbumpc();
    if (c == Traits::eof()) refuse("a quoted cell is not closed before the end of the file");
    if (c == '\n') ++line_;
    if (c != '"') {
      cell.push_back(static_cast<char>(c));
      require_length(cell.size());
      continue;
    }
    if (in.sgetc() != '"') return;
    cell.push_back('"');
    in.sbumpc();
  }
}

bool CsvReader::read_record(std::vector<std::string>& cells) {
  std::streambuf& in = *stream_.rdbuf();
  while (in.sgetc() == '\n' || in.sgetc() == '\r')
    if (in.sbumpc() == '\n') ++line_;
  first_line_ = line_;
  if (in.sgetc() == Traits::eof()) return false;
  std::size_t count = 0;   // cells are overwritten in place, so that their memory is reused
  std::size_t length = 0;  // of the record
  std::size_t quoted = 0;  // characters of the cell that stood in quotes: a carriage return there is its own
  const auto fresh = [&]() -> std::string& {
    if (count == cells.size()) cells.emplace_back();
    cells[count].clear();
    quoted = 0;
    return cells[count++];
  };
  for (std::string* cell = &fresh();;) {
    const int c = in.sbumpc();
    require_length(++length);
    if (c == Traits::eof() || c == '\n') {
      if (c == '\n') ++line_;
      if (c == '\n' && cell->size() > quoted && cell->back() == '\r') cell->pop_back();
      cells.resize(count);
      return true;
    }
    if (c == separator_)
      cell = &fresh();
    else if (c == '"' && cell->empty()) {
      read_quoted(*cell);
      quoted = cell->size();
    } else
      cell->push_back(static_cast<char>(c));
  }
}

double CsvReader::number(std::size_t column) const {
  double value = 0;
  if (!parse(cells_[column], value))
    refuse(fmt::format("column '{}' holds '{}', which is not a number", header_[column], cells_[column]));
  return value;
}

std::int64_t CsvReader::integer(std::size_t column) const {
  std::int64_t value = 0;
  if (!parse(cells_[column], value))
    refuse(fmt::format("column '{}' holds '{}', which is not an integer", header_[column], cells_[column]));
  return value;
}

CsvWriter::CsvWriter(std::filesystem::path path, const std::vector<std::string>& header, char separator)
    : path_(std::move(path)),
      partial_(partial_path(path_)),
      stream_(partial_, std::ios::binary | std::ios::trunc),
      separator_(separator ? separator : separator_of(path_)),
      columns_(header.size()) {
  if (!stream_) throw Error(ErrorCode::io, "cannot be opened for writing", path_.string());
  for (const std::string& name : header) cell(name);
  end_row();
}

CsvWriter::~CsvWriter() {
  stream_.close();
  if (closed_ || partial_ == path_) return;
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

CsvWriter& CsvWriter::append(std::string_view text) {
  if (in_row_++) stream_.put(separator_);
  stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  return *this;
}

CsvWriter& CsvWriter::cell(std::string_view text) {
  const char special[] = {separator_, '"', '\n', '\r', '\0'};
  if (text.find_first_of(special) == std::string_view::npos) return append(text);
  std::string quoted = "\"";
  for (char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return append(quoted + "\"");
}

CsvWriter& CsvWriter::cell(double value) { return append(fmt::format("{}", value)); }
CsvWriter& CsvWriter::cell(float value) { return append(fmt::format("{}", value)); }
CsvWriter& CsvWriter::cell(std::int64_t value) { return append(fmt::format("{}", value)); }

void CsvWriter::end_row() {
  if (in_row_ != columns_)
    throw Error(ErrorCode::internal, fmt::format("{} cells in a row of {}", in_row_, columns_),
                path_.string());
  stream_.put('\n');
  in_row_ = 0;
}

void CsvWriter::close() {
  stream_.close();
  std::error_code error;
  if (stream_ && partial_ != path_) std::filesystem::rename(partial_, path_, error);
  if (!stream_ || error) throw Error(ErrorCode::io, "could not be written", path_.string());
  closed_ = true;
}

}  // namespace superstep::data
