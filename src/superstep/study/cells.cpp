#include "superstep/study/cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/lab/validate/published.h"
#include "superstep/study/known.h"

namespace superstep::study {
namespace {

std::vector<std::string> all_columns() {
  std::vector<std::string> names{"id", "source", "place", "value"};
  for (const Column& column : columns()) names.emplace_back(column.name);
  return names;
}

std::string quoted(const std::string& text) {
  std::string cell = "\"";
  for (const char letter : text) cell += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return cell + "\"";
}

std::string csv_of(const std::vector<Row>& rows) {
  const std::vector<std::string> names = all_columns();
  std::string text = join(names, ",") + "\n";
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& name : names) {
      const auto found = row.find(name);
      cells.push_back(found == row.end() || found->second.empty() ? "" : quoted(found->second));
    }
    text += join(cells, ",") + "\n";
  }
  return text;
}

Row row_of(const lab::PublishedTable& table, std::size_t row) {
  Row cells;
  for (const std::string& name : all_columns())
    if (const std::string& text = table.text(row, name); !text.empty()) cells[name] = text;
  return cells;
}

// What is not said is left out of the words: "braggnn train gc200 fp16 512".
std::string key_of(const Row& row) {
  std::vector<std::string> words;
  for (const Column& column : columns())
    if (column.name != "unit" && column.name != "note" && column.name != "framework")
      if (const auto found = row.find(std::string(column.name)); found != row.end())
        words.push_back(column.counts ? fmt::format("{}={}", column.name, found->second) : found->second);
  return join(words, " ");
}

// A cell of a grid that a published row is.
bool is_same(const Row& cell, const Row& published) {
  return std::ranges::all_of(cell, [&](const auto& said) {
    if (said.first == "note" || said.first == "framework" || said.first == "place" || said.first == "source")
      return true;
    const auto found = published.find(said.first);
    return found != published.end() && found->second == said.second;
  });
}

// Every combination of a grid, its last column fastest.
std::vector<Row> rows_of(const Grid& grid, const std::string& study) {
  std::vector<Row> rows{{{"source", "study"}, {"place", study}}};
  for (const auto& [column, words] : grid.lists) {
    std::vector<Row> longer;
    for (const Row& row : rows)
      for (const std::string& word : words) {
        longer.push_back(row);
        longer.back()[column] = word;
      }
    rows = std::move(longer);
  }
  return rows;
}

struct Collected {
  std::vector<Row> rows;  // published ones first
  std::vector<Cell> cells;
  std::map<std::string, std::size_t> by_id;
  std::size_t predictable = 0;  // rows before it are of results
};

void add_table(Collected& all, const lab::PublishedTable& table) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    all.by_id[table.text(row, "id")] = all.rows.size();
    all.rows.push_back(row_of(table, row));
  }
}

void add_published(Collected& all, const Study& study) {
  std::vector<std::string> known;
  for (const auto& [id, row] : all.by_id) known.push_back(id);
  for (const std::string& id : study.published) {
    const auto found = all.by_id.find(id);
    if (found == all.by_id.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("published: there is no row '{}'", id),
                  study.name + ".toml", unknown_name_hint(id, known));
    all.cells.push_back(
        {.row = found->second, .key = id, .published = 0.0, .predictable = found->second < all.predictable});
  }
}

// A user's own rows are published ones of this study.
void add_users_table(Collected& all, const Study& study) {
  if (study.rows.empty()) return;
  try {
    const lab::PublishedTable table(study.rows);
    if (!lab::has_application_rows(table))
      throw Error(ErrorCode::invalid_argument, "needs the columns workload, machine, metric and value",
                  study.rows.string());
    for (std::size_t row = 0; row < table.rows(); ++row) {
      table.number(row, "value", 0);
      for (const Column& column : columns())
        if (column.counts) table.integer(row, column.name, 0);
      all.cells.push_back({.row = all.rows.size(), .key = {}, .published = 0.0});
      all.rows.push_back(row_of(table, row));
      Row& added = all.rows.back();
      all.cells.back().key = added.contains("id") ? added["id"] : key_of(added);
    }
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, "rows: " + error.message(), error.where(), error.hint());
  }
}

void add_grids(Collected& all, const Study& study) {
  const std::size_t published = all.cells.size();
  for (const Grid& grid : study.grids)
    for (Row& row : rows_of(grid, study.name)) {
      const bool known =
          std::any_of(all.cells.begin(), all.cells.begin() + static_cast<std::ptrdiff_t>(published),
                      [&](const Cell& cell) { return is_same(row, all.rows[cell.row]); });
      if (known) continue;
      all.cells.push_back({.row = all.rows.size(), .key = key_of(row), .published = {}});
      all.rows.push_back(std::move(row));
    }
}

}  // namespace

std::int64_t Cells::position(const Cell& cell, std::string_view column) const {
  if (column != "workload") return count(cell, column);
  const std::optional<lab::Primitive> product = lab::product_named(text(cell, column));
  return product && product->m == product->n && product->n == product->k ? product->m : 0;
}

Cells cells_of(const Study& study) {
  Collected all;
  add_table(all, lab::published_results());
  all.predictable = all.rows.size();
  add_table(all, lab::further_published());
  add_published(all, study);
  add_users_table(all, study);
  add_grids(all, study);
  lab::PublishedTable table(csv_of(all.rows), study.name);
  for (Row& row : all.rows)
    if (row["metric"] == "throughput_per_price") row["metric"] = "throughput";
  Cells cells{std::move(table), lab::PublishedTable(csv_of(all.rows), study.name), std::move(all.cells)};
  for (Cell& cell : cells.list)
    if (cell.published) cell.published = cells.table.number(cell.row, "value", 0);
  return cells;
}

}  // namespace superstep::study
