// A table as a source of samples.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/columns/column_forms.h"
#include "superstep/file/columns/kept_cells.h"
#include "superstep/file/columns/tables.h"
#include "superstep/file/pictures/picture.h"
#include "superstep/file/records/record_source.h"
#include "superstep/file/source/column_arrays.h"
#include "superstep/file/source/ordered_source.h"
#include "superstep/file/source/row_reader.h"

namespace superstep::data {
namespace {

using columns::Cells;
using columns::ColumnTable;
using columns::TableColumn;

// A value of a row: one column, or several side by side.
struct TableValue {
  std::string name;
  ElementType type = ElementType::f32;
  Shape row = {};
  bool is_bytes = false;  // a picture
  std::vector<std::size_t> columns = {};
  bool may_be_wanted = true;
};

// Without the ".bytes" of a structure that also has a ".path".
std::string name_of_value(const std::vector<TableColumn>& columns, std::size_t column) {
  constexpr std::string_view ending = ".bytes";
  const std::string& name = columns[column].name;
  if (!columns[column].is_bytes || !name.ends_with(ending)) return name;
  const std::string bare = name.substr(0, name.size() - ending.size());
  const bool has_path = std::ranges::find(columns, bare + ".path", &TableColumn::name) != columns.end();
  return has_path ? bare : name;
}

class TableSource : public RecordSource {
 public:
  TableSource(std::unique_ptr<ColumnTable> table, const SourceRequest& request)
      : table_(std::move(table)),
        skips_broken_(request.skip_broken),
        kept_(table_->columns().size(), OrderedSource::default_kept_bytes) {
    find_values(request);
    if (table_->rows() == 0) throw Error(ErrorCode::bad_file, "has no rows", table_->path().string());
    settle(table_->rows(), request);
    for (std::size_t i = 0; i < arrays().size(); ++i) {
      const auto found = std::ranges::find(values_, name_in_records(i), &TableValue::name);
      value_of_.push_back(static_cast<std::size_t>(found - values_.begin()));
      if (found->columns.size() == 1) set_classes(i, table_->columns()[found->columns[0]].classes);
    }
  }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    std::vector<std::int64_t> numbers;
    for (const std::int64_t row : rows) numbers.push_back(number_of(row));
    for (const RowsTo& one : wanted) {
      const TableValue& value = values_[value_of_[one.array]];
      if (value.is_bytes)
        read_pictures(value, rows, numbers, one);
      else
        read_numbers(value, numbers, one.to);
    }
    table_->require_unchanged();
  }

  // What is small stays unpacked.
  std::vector<std::int64_t> shards() const override {
    if (table_->unpacked_bytes() <= static_cast<double>(OrderedSource::default_kept_bytes) / 2) return {};
    std::vector<std::int64_t> firsts;
    std::int64_t row = 0;
    for (const std::int64_t first : table_->groups()) {
      while (row < arrays()[0].rows && number_of(row) < first) ++row;
      if (row < arrays()[0].rows && (firsts.empty() || firsts.back() != row)) firsts.push_back(row);
    }
    return firsts;
  }

 protected:
  // To see what there is, and which rows are broken: numbers are read without records.
  Record record(std::int64_t row) const override {
    Record record;
    for (const TableValue& value : values_) {
      if (value.is_bytes) {
        const auto cells = cells_at(value, 0, row);
        const std::span<const std::byte> bytes = bytes_of(value, *cells, row);
        record.push_back({value.name, EncodedBytes(bytes.begin(), bytes.end())});
      } else {
        // What nobody wants may miss a value.
        Tensor numbers(value.type, value.row);
        const std::int64_t one[] = {row};
        if (skips_broken_ && value.may_be_wanted) read_numbers(value, one, numbers.bytes());
        record.push_back({value.name, std::move(numbers)});
      }
    }
    return record;
  }
  std::string place_of(std::int64_t row) const override {
    return fmt::format("{}: row {}", table_->path().string(), row + 1);
  }
  void require_unchanged() const override { table_->require_unchanged(); }

 private:
  void find_values(const SourceRequest& request) {
    const std::vector<TableColumn>& all = table_->columns();
    std::vector<std::string> names;
    std::vector<bool> numeric;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool read = all[i].why_not.empty();
      if (!read) add_other(fmt::format("'{}' ({})", printable(all[i].name), all[i].why_not));
      names.push_back(name_of_value(all, i));
      numeric.push_back(read && !all[i].is_bytes && all[i].row.rank() == 0);
      if (!read || numeric.back()) continue;
      if (all[i].is_bytes && !holds_pictures(i))
        add_other(fmt::format("'{}' (texts)", printable(all[i].name)));
      else
        values_.push_back({names.back(), all[i].type, all[i].row, all[i].is_bytes, {i}});
    }
    // Columns of one number each are joined for what no column of several has the name of.
    std::vector<SourceArray> wanted = request.wanted;
    std::erase_if(wanted, [&](const SourceArray& one) {
      return std::ranges::any_of(values_, [&](const TableValue& value) {
        return value.name == one.name || (value.is_bytes && one.row.rank() >= 2);
      });
    });
    ColumnArrays made = arrays_of_columns(names, numeric, wanted);
    for (std::string& note : made.notes) add_note(std::move(note));
    for (ColumnArray& array : made.arrays) add_joined(std::move(array));
    for (TableValue& value : values_) value.may_be_wanted = may_be_wanted(value, request);
  }

  // Under its own name, or as the one that says the class.
  static bool may_be_wanted(const TableValue& value, const SourceRequest& request) {
    return request.wanted.empty() || value.is_bytes ||
           (value.row.element_count() == 1 && !is_floating(value.type)) ||
           std::ranges::find(request.wanted, value.name, &SourceArray::name) != request.wanted.end();
  }

  // By the first bytes that are there, among the first rows.
  bool holds_pictures(std::size_t column) const {
    if (table_->rows() == 0) return false;
    const auto cells = table_->load(column, 0);
    for (std::size_t i = 0; i + 1 < cells->begins.size(); ++i) {
      const auto bytes =
          std::span(cells->bytes).subspan(cells->begins[i], cells->begins[i + 1] - cells->begins[i]);
      if (!bytes.empty()) return picture_form_of(bytes) != PictureForm::none;
    }
    return false;
  }

  void add_joined(ColumnArray array) {
    TableValue value{array.name, table_->columns()[array.columns[0]].type, array.row};
    for (const std::size_t column : array.columns)
      if (table_->columns()[column].type != value.type) value.type = ElementType::f64;
    value.columns = std::move(array.columns);
    values_.push_back(std::move(value));
  }

  std::string place_of_value(const TableValue& value, std::int64_t row) const {
    return fmt::format("{}, '{}'", place_of(row), printable(value.name));
  }

  // In the type of the value.
  std::shared_ptr<const Cells> cells_at(const TableValue& value, std::size_t part, std::int64_t row) const {
    const std::size_t column = value.columns[part];
    if (auto kept = kept_.find(column, row)) return kept;
    std::shared_ptr<const Cells> cells = table_->load(column, row);
    if (!value.is_bytes && table_->columns()[column].type != value.type)
      cells = widened(value, column, *cells);
    kept_.keep(column, cells);
    return cells;
  }

  std::shared_ptr<const Cells> widened(const TableValue& value, std::size_t column,
                                       const Cells& cells) const {
    const TableColumn& own = table_->columns()[column];
    Tensor numbers(own.type, Shape{cells.rows});
    if (!cells.bytes.empty()) std::memcpy(numbers.bytes(), cells.bytes.data(), numbers.byte_count());
    constexpr double exact = 9007199254740992.0;  // 2^53
    const bool wide = size_in_bytes(own.type) == 8 && !is_floating(own.type);
    for (std::int64_t i = 0; wide && i < cells.rows; ++i)
      if (numbers.at(i) >= exact || numbers.at(i) <= -exact)
        throw Error(ErrorCode::bad_file,
                    fmt::format("column '{}' holds a whole number of more than 15 digits, beside fractions",
                                printable(own.name)),
                    place_of_value(value, cells.first + i), "give its column a name of its own");
    const Tensor converted = numbers.converted(value.type);
    Cells made{.first = cells.first, .rows = cells.rows, .missing = cells.missing};
    made.bytes.assign(converted.bytes(), converted.bytes() + converted.byte_count());
    return std::make_shared<const Cells>(std::move(made));
  }

  void require_there(const TableValue& value, const Cells& cells, std::int64_t row) const {
    if (cells.missing.empty() || !cells.missing[static_cast<std::size_t>(row - cells.first)]) return;
    throw Error(ErrorCode::bad_file,
                value.row.rank() > 0 ? "has no value, or a list of another length than in the first row"
                                     : "has no value",
                place_of_value(value, row), "--skip-broken leaves such rows out");
  }

  std::span<const std::byte> bytes_of(const TableValue& value, const Cells& cells, std::int64_t row) const {
    require_there(value, cells, row);
    const auto at = static_cast<std::size_t>(row - cells.first);
    return std::span(cells.bytes).subspan(cells.begins[at], cells.begins[at + 1] - cells.begins[at]);
  }

  void read_pictures(const TableValue& value, std::span<const std::int64_t> rows,
                     std::span<const std::int64_t> numbers, const RowsTo& to) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto cells = cells_at(value, 0, numbers[i]);
      put_picture(bytes_of(value, *cells, numbers[i]), rows[i], to.array,
                  to.to + i * arrays()[to.array].row_bytes());
    }
  }

  void read_numbers(const TableValue& value, std::span<const std::int64_t> numbers, std::byte* to) const {
    const std::size_t width = size_in_bytes(value.type),
                      row_bytes = static_cast<std::size_t>(value.row.element_count()) * width;
    const bool alone = value.columns.size() == 1;
    if (alone && table_->is_direct(value.columns[0]))
      return for_runs(numbers, row_bytes, to, [&](std::int64_t first, std::int64_t count, std::byte* at) {
        table_->read_direct(value.columns[0], first, count, at);
      });
    for (std::size_t part = 0; part < value.columns.size(); ++part) {
      const std::size_t size = alone ? row_bytes : width;
      std::shared_ptr<const Cells> cells;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!cells || !cells->holds(numbers[i])) cells = cells_at(value, part, numbers[i]);
        require_there(value, *cells, numbers[i]);
        std::memcpy(to + i * row_bytes + part * width,
                    cells->bytes.data() + static_cast<std::size_t>(numbers[i] - cells->first) * size, size);
      }
    }
  }

  std::unique_ptr<ColumnTable> table_;
  bool skips_broken_;
  std::vector<TableValue> values_;
  std::vector<std::size_t> value_of_;  // by array
  mutable columns::KeptCells kept_;
};

std::string first_bytes(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return {};
  std::string begin(8, '\0');
  std::ifstream stream = open_regular_file(path);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return begin;
}

}  // namespace

bool is_parquet(const std::filesystem::path& path) {
  const std::string begin = first_bytes(path);
  return begin.starts_with("PAR1") || begin.starts_with("PARE");
}

bool is_arrow(const std::filesystem::path& path) {
  const std::string begin = first_bytes(path);
  if (begin.starts_with("ARROW1") || begin.starts_with("FEA1")) return true;
  // A stream begins with a mark and the length of its schema.
  return begin.size() == 8 && begin.starts_with("\xff\xff\xff\xff") && begin[7] == '\0' && begin[6] < 16;
}

std::unique_ptr<SampleSource> open_parquet(const std::filesystem::path& path, const SourceRequest& request) {
  return std::make_unique<TableSource>(columns::open_parquet_table(path), request);
}

std::unique_ptr<SampleSource> open_arrow(const std::filesystem::path& path, const SourceRequest& request) {
  return std::make_unique<TableSource>(columns::open_arrow_table(path), request);
}

}  // namespace superstep::data
