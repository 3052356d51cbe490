#include "superstep/file/source/column_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "superstep/base/printable.h"

namespace superstep::data {
namespace {

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

class ColumnsToArrays {
 public:
  ColumnsToArrays(std::span<const std::string> names, const std::vector<bool>& numeric)
      : names_(names), left_(numeric) {}

  ColumnArrays arrays(std::span<const SourceArray> wanted) {
    std::vector<const SourceArray*> unnamed;
    for (const SourceArray& one : wanted)
      if (std::vector<std::size_t> columns = columns_named(one); columns.empty())
        unnamed.push_back(&one);
      else
        take(one, std::move(columns));
    if (unnamed.size() == 1) take_the_rest(*unnamed[0]);
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (left_[i]) made_.arrays.push_back({names_[i], Shape{}, {i}});
    return std::move(made_);
  }

 private:
  void take(const SourceArray& wanted, std::vector<std::size_t> columns) {
    for (const std::size_t column : columns) left_[column] = false;
    made_.arrays.push_back({wanted.name, wanted.row, std::move(columns)});
  }

  std::vector<std::size_t> columns_named(const SourceArray& wanted) const {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, wanted.row.element_count()));
    std::vector<std::pair<std::int64_t, std::size_t>> numbered;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!left_[i]) continue;
      if (names_[i] == wanted.name && count == 1) return {i};
      if (const auto number = number_behind(names_[i], wanted.name)) numbered.emplace_back(*number, i);
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
  void take_the_rest(const SourceArray& wanted) {
    std::vector<std::size_t> columns;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (left_[i]) columns.push_back(i), names.push_back(printable(names_[i]));
    if (columns.empty() || !is_floating(wanted.type) ||
        wanted.row.element_count() != static_cast<std::int64_t>(columns.size()))
      return;
    made_.notes.push_back(
        fmt::format("'{}' is made of the columns {}", printable(wanted.name), fmt::join(names, ", ")));
    take(wanted, std::move(columns));
  }

  std::span<const std::string> names_;
  std::vector<bool> left_;  // columns that are in no array yet
  ColumnArrays made_;
};

}  // namespace

ColumnArrays arrays_of_columns(std::span<const std::string> names, const std::vector<bool>& numeric,
                               std::span<const SourceArray> wanted) {
  return ColumnsToArrays(names, numeric).arrays(wanted);
}

}  // namespace superstep::data
