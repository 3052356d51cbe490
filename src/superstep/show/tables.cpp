#include "superstep/show/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "superstep/base/text.h"

namespace superstep::show {
namespace {

constexpr std::int64_t shown_rows = 10, widest_table = 16;
constexpr std::int64_t most_strings = 100000;  // that are read: a moment, some megabytes
constexpr std::size_t most_points = 100000;    // of a curve that is drawn
constexpr std::size_t longest_shown = 400;     // letters of a string in a cell
constexpr std::int64_t widest_text = 4096;     // bytes of a padded line: wider rows are pictures

bool counts_whole_numbers(const ShownDataSet& data_set) {
  return data_set.info.type && !is_floating(*data_set.info.type);
}

// A bin for every whole number while there are few, 60 bins otherwise.
page::Series bins_of(const ShownDataSet& data_set) {
  const Statistics& s = data_set.statistics;
  if (counts_whole_numbers(data_set) && s.high - s.low < 60)
    return page::histogram("", s.values, s.low - 0.5, s.high + 0.5, static_cast<int>(s.high - s.low) + 1);
  return page::histogram("", s.values, s.low, s.high, 60);
}

std::string axis_label(const ShownDataSet& data_set) {
  const std::string what = data_set.info.complex ? "amplitude of " + data_set.info.name : data_set.info.name;
  return data_set.unit.empty() ? what : what + " (" + data_set.unit + ")";
}

// Headings of the columns of one table: its name, numbered when there are several.
std::vector<std::string> column_names(const data::DataSetInfo& info) {
  if (info.shape.rank() == 1) return {info.name};
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < info.shape[1]; ++c) names.push_back(fmt::format("{}[{}]", info.name, c));
  return names;
}

}  // namespace

bool is_table(const data::DataSetInfo& info) {
  const int rank = info.shape.rank();
  return info.type && !info.complex && (rank == 1 || (rank == 2 && info.shape[1] <= widest_table));
}

void add_histogram(page::Page& page, const ShownDataSet& data_set) {
  const Statistics& s = data_set.statistics;
  if (s.values.size() < 3 || s.low == s.high) return;
  page::Series bins = bins_of(data_set);
  // When most values lie in one bin the others show on a logarithmic axis only.
  const bool peaked = *std::ranges::max_element(bins.y) > 0.5 * static_cast<double>(s.values.size());
  page::Plot plot{
      "Values of " + data_set.info.name, axis_label(data_set), "count", false, peaked, {}, {}, {}};
  plot.series.push_back(std::move(bins));
  page.plot(plot);
}

void add_curve(page::Page& page, const ShownDataSet& data_set) {
  const Statistics& s = data_set.statistics;
  if (data_set.info.shape.rank() != 1 || data_set.info.complex || s.not_finite > 0) return;
  if (s.values.size() < 3 || s.values.size() > most_points) return;
  page::Series series;
  for (std::size_t i = 0; i < s.values.size(); ++i) series.x.push_back(static_cast<double>(i));
  series.y = s.values;
  page::Plot plot{data_set.info.name + " in order", "index", axis_label(data_set), false, false, {}, {}, {}};
  plot.series.push_back(std::move(series));
  page.plot(plot);
}

void add_first_rows(page::Page& page, const ArrayFile& file, const std::vector<const ShownDataSet*>& tables) {
  const std::int64_t all = tables.front()->info.shape[0], rows = std::min(all, shown_rows);
  std::vector<std::string> header = {"row"};
  std::vector<std::vector<std::string>> cells;
  for (std::int64_t row = 0; row < rows; ++row) cells.push_back({std::to_string(row)});
  for (const ShownDataSet* table : tables) {
    std::ranges::copy(column_names(table->info), std::back_inserter(header));
    std::vector<std::int64_t> count = table->info.shape.extents();
    count[0] = rows;
    const Tensor values =
        file.read_block(table->info, *table->info.type, std::vector<std::int64_t>(count.size()), count);
    const std::int64_t columns = rows > 0 ? values.element_count() / rows : 0;
    for (std::int64_t i = 0; i < values.element_count(); ++i)
      cells[static_cast<std::size_t>(i / columns)].push_back(fmt::format("{:.6g}", values.at(i)));
  }
  if (rows < all)
    page.paragraph(fmt::format("The first {} of {} rows.", rows, format_count(static_cast<double>(all))));
  page.table(header, cells);
}

void add_strings(page::Page& page, const ArrayFile& file, const data::DataSetInfo& info) {
  const std::int64_t count = info.shape.element_count();
  if (count == 0 || count > most_strings) return;
  const std::vector<std::string> strings = file.read_strings(info);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min<std::size_t>(strings.size(), shown_rows); ++i)
    rows.push_back({std::to_string(i), strings[i].size() > longest_shown
                                           ? strings[i].substr(0, longest_shown) + " ..."
                                           : strings[i]});
  page.table({"index", info.name}, rows);
}

namespace {

// The first rows, each up to its first zero; nothing where a row is no padded text.
std::optional<std::vector<std::string>> first_texts(const ArrayFile& file, const data::DataSetInfo& info) {
  const std::int64_t rows = std::min(info.shape[0], shown_rows), width = info.shape[1];
  const std::int64_t first[] = {0, 0}, count[] = {rows, width};
  const Tensor bytes = file.read_block(info, ElementType::u8, first, count);
  std::vector<std::string> texts;
  bool letters = false;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string all(reinterpret_cast<const char*>(bytes.bytes()) + row * width,
                          static_cast<std::size_t>(width));
    const std::string text = all.substr(0, all.find('\0'));
    const bool padded = std::all_of(all.begin() + static_cast<std::ptrdiff_t>(text.size()), all.end(),
                                    [](char c) { return c == '\0'; });
    if (text.empty() || !padded || !std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
      return {};
    letters = letters || std::ranges::any_of(text, [](unsigned char c) { return std::isalpha(c) != 0; });
    texts.push_back(text);
  }
  return letters ? std::optional(texts) : std::nullopt;
}

}  // namespace

bool is_padded_text(const ArrayFile& file, const data::DataSetInfo& info) {
  if (info.type != ElementType::u8 || info.shape.rank() != 2 || info.shape.element_count() == 0) return false;
  return info.shape[1] >= 4 && info.shape[1] <= widest_text && first_texts(file, info).has_value();
}

void add_padded_text(page::Page& page, const ArrayFile& file, const data::DataSetInfo& info) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& text : first_texts(file, info).value_or(std::vector<std::string>()))
    rows.push_back({std::to_string(rows.size()), text});
  page.table({"row", info.name}, rows);
}

}  // namespace superstep::show
