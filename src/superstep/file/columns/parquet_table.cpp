// Parquet: a page of a column at a time, or, of lists, all of a column in a group of rows.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/tensor.h"
#include "superstep/file/columns/class_names.h"
#include "superstep/file/columns/list_rows.h"
#include "superstep/file/columns/parquet_pages.h"
#include "superstep/file/columns/tables.h"

namespace superstep::data::columns {
namespace {

// The bits of a NaN of a type; of others none.
std::vector<std::byte> nan_of(ElementType type) {
  if (!is_floating(type)) return {};
  const Tensor nan = Tensor::full(type, Shape{}, std::numeric_limits<double>::quiet_NaN());
  return {nan.bytes(), nan.bytes() + nan.byte_count()};
}

template <class To>
void narrow(const std::vector<std::byte>& from, std::vector<std::byte>& to, const std::string& where) {
  const std::size_t count = from.size() / sizeof(std::int32_t);
  to.resize(count * sizeof(To));
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t value = 0;
    std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
    if (!std::in_range<To>(value))
      throw Error(ErrorCode::bad_file, fmt::format("holds {}, which its type does not", value), where);
    const auto narrowed = static_cast<To>(value);
    std::memcpy(to.data() + i * sizeof narrowed, &narrowed, sizeof narrowed);
  }
}

// Numbers of fewer than 32 bits lie in as many.
std::vector<std::byte> as_type(std::vector<std::byte> bytes, const ParquetLeaf& leaf,
                               const std::string& where) {
  if (leaf.physical != Physical::i32) return bytes;
  std::vector<std::byte> narrowed;
  switch (leaf.column.type) {
    case ElementType::i8: narrow<std::int8_t>(bytes, narrowed, where); return narrowed;
    case ElementType::u8: narrow<std::uint8_t>(bytes, narrowed, where); return narrowed;
    case ElementType::i16: narrow<std::int16_t>(bytes, narrowed, where); return narrowed;
    case ElementType::u16: narrow<std::uint16_t>(bytes, narrowed, where); return narrowed;
    default: return bytes;
  }
}

// A row a value.
Cells flat_cells(const ParquetLeaf& leaf, DecodedPage page, std::int64_t first, std::int64_t rows,
                 const std::string& where) {
  Cells cells{.first = first, .rows = rows};
  const auto count = static_cast<std::size_t>(rows);
  const bool all = page.values.count == count;
  const auto& defined = page.levels.defined;
  const auto is_there = [&](std::size_t i) { return all || defined[i] == leaf.most_defined; };
  if (leaf.column.is_bytes) {
    cells.bytes = std::move(page.values.bytes);
    cells.begins = all ? std::move(page.values.begins) : std::vector<std::uint64_t>{0};
    if (all) return cells;
    cells.missing.resize(count);
    for (std::size_t i = 0, at = 0; i < count; ++i) {
      cells.missing[i] = !is_there(i);
      if (is_there(i)) ++at;
      cells.begins.push_back(page.values.begins[at]);
    }
    return cells;
  }
  std::vector<std::byte> there = as_type(std::move(page.values.bytes), leaf, where);
  if (all) return cells.bytes = std::move(there), cells;
  const std::size_t width = size_in_bytes(leaf.column.type);
  const std::vector<std::byte> nan = nan_of(leaf.column.type);
  cells.bytes.resize(count * width);
  if (nan.empty()) cells.missing.resize(count);
  for (std::size_t i = 0, at = 0; i < count; ++i) {
    if (is_there(i))
      std::memcpy(cells.bytes.data() + i * width, there.data() + width * at++, width);
    else if (nan.empty())
      cells.missing[i] = true;
    else
      std::memcpy(cells.bytes.data() + i * width, nan.data(), width);
  }
  return cells;
}

// Rows that are lists; those that are not as the first row of the table are missing.
class ListCells {
 public:
  ListCells(const ParquetLeaf& leaf, const DecodedPage& chunk, const RowGroup& group)
      : leaf_(leaf),
        levels_(chunk.levels),
        values_(chunk.values.count),
        pattern_(pattern_of(leaf.column.row.extents())) {
    cells_ = {.first = group.first, .rows = group.rows};
  }

  Cells cells(std::vector<std::byte> there, const std::string& where) {
    const auto rows = static_cast<std::size_t>(cells_.rows), count = levels_.repeated.size();
    if (static_cast<std::int64_t>(std::ranges::count(levels_.repeated, 0)) != cells_.rows ||
        (count > 0 && levels_.repeated[0] != 0))
      throw Error(ErrorCode::bad_file, "is damaged: a column has other rows than its group", where);
    if (is_regular()) return cells_.bytes = std::move(there), std::move(cells_);
    cells_.missing.resize(rows);
    cells_.bytes.resize(rows * leaf_.column.row_bytes());
    nan_ = nan_of(leaf_.column.type);
    std::size_t begin = 0, at = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      std::size_t end = begin + 1;
      while (end < count && levels_.repeated[end] != 0) ++end;
      put_row(row, begin, end, there, at);
      begin = end;
    }
    return std::move(cells_);
  }

 private:
  bool is_regular() const {
    const std::size_t count = levels_.repeated.size(), each = pattern_.size();
    if (values_ != count || count != static_cast<std::size_t>(cells_.rows) * each) return false;
    for (std::size_t i = 0; i < count; i += each)
      if (!std::equal(pattern_.begin(), pattern_.end(),
                      levels_.repeated.begin() + static_cast<std::ptrdiff_t>(i)))
        return false;
    return true;
  }

  // Of the values from `begin` to `end`, those that are there come from `at` on, which moves on.
  void put_row(std::size_t row, std::size_t begin, std::size_t end, const std::vector<std::byte>& there,
               std::size_t& at) {
    const std::size_t width = size_in_bytes(leaf_.column.type);
    bool sound = end - begin == pattern_.size() &&
                 std::equal(pattern_.begin(), pattern_.end(),
                            levels_.repeated.begin() + static_cast<std::ptrdiff_t>(begin));
    std::byte* to = sound ? cells_.bytes.data() + row * leaf_.column.row_bytes() : nullptr;
    for (std::size_t i = begin; i < end; ++i) {
      const int defined = levels_.defined[i];
      const std::byte* value = nullptr;
      if (defined == leaf_.most_defined) value = there.data() + width * at++;
      if (!value && leaf_.optional && defined == leaf_.most_defined - 1 && !nan_.empty()) value = nan_.data();
      if (value && to) std::memcpy(to + (i - begin) * width, value, width);
      sound &= value != nullptr;
    }
    cells_.missing[row] = !sound;
  }

  const ParquetLeaf& leaf_;
  const Levels& levels_;
  std::size_t values_;
  std::vector<std::uint8_t> pattern_;
  std::vector<std::byte> nan_;
  Cells cells_;
};

class ParquetTable : public ColumnTable {
 public:
  explicit ParquetTable(const std::filesystem::path& path) : file_(path), meta_(read_parquet_meta(file_)) {
    for (std::size_t i = 0; i < meta_.leaves.size(); ++i) {
      set_shape(i);
      columns_.push_back(meta_.leaves[i].column);
    }
    if (const auto said = meta_.properties.find("huggingface"); said != meta_.properties.end())
      set_class_names(columns_, said->second);
    dictionaries_.resize(meta_.leaves.size());
  }

  const std::vector<TableColumn>& columns() const override { return columns_; }
  std::int64_t rows() const override { return meta_.rows; }
  bool is_direct(std::size_t) const override { return false; }
  void read_direct(std::size_t, std::int64_t, std::int64_t, std::byte*) const override {}
  const std::filesystem::path& path() const override { return file_.path(); }
  void require_unchanged() const override { file_.require_unchanged(); }

  double unpacked_bytes() const override {
    double bytes = 0;
    for (const RowGroup& group : meta_.groups)
      for (const ColumnChunk& chunk : group.chunks) bytes += chunk.unpacked;
    return bytes;
  }
  std::vector<std::int64_t> groups() const override {
    std::vector<std::int64_t> firsts;
    for (const RowGroup& group : meta_.groups) firsts.push_back(group.first);
    return firsts;
  }

  std::shared_ptr<const Cells> load(std::size_t column, std::int64_t row) const override {
    const auto after = std::ranges::upper_bound(meta_.groups, row, {}, &RowGroup::first);
    const auto group = static_cast<std::size_t>(after - meta_.groups.begin()) - 1;
    const ParquetLeaf& leaf = meta_.leaves[column];
    return std::make_shared<const Cells>(leaf.most_repeated > 0 ? lists(column, group)
                                                                : page(column, group, row));
  }

 private:
  std::string where(std::size_t column) const {
    return fmt::format("{}: column '{}'", file_.path().string(), printable(meta_.leaves[column].column.name));
  }
  const ColumnChunk& chunk(std::size_t column, std::size_t group) const {
    return meta_.groups[group].chunks[column];
  }

  // Of lists: as the first row has it.
  void set_shape(std::size_t column) {
    ParquetLeaf& leaf = meta_.leaves[column];
    if (leaf.most_repeated == 0 || !leaf.column.why_not.empty() || meta_.groups.empty()) return;
    const Levels first = first_row(column);
    const auto least = leaf.most_defined - (leaf.optional ? 1 : 0);
    const bool empty =
        std::ranges::any_of(first.defined, [&](std::uint8_t defined) { return defined < least; });
    const auto extents = extents_of_row(first.repeated, leaf.most_repeated);
    if (empty || !extents)
      leaf.column.why_not = empty ? "lists, the first of which is empty" : "lists of several lengths";
    else
      leaf.column.row = Shape(*extents);
  }

  Levels first_row(std::size_t column) const {
    const ColumnChunk& own = chunk(column, 0);
    const std::string place = where(column);
    const ParquetPages pages = pages_of(file_, own, place);
    const auto dictionary = dictionary_of(column, 0, pages);
    Levels first;
    for (const ParquetPage& page : pages.data) {
      const Levels levels =
          decode_page(file_, meta_.leaves[column], own, page.header, dictionary.get(), place).levels;
      for (std::size_t i = 0; i < levels.repeated.size(); ++i) {
        if (levels.repeated[i] == 0 && !first.repeated.empty()) return first;
        first.repeated.push_back(levels.repeated[i]);
        first.defined.push_back(levels.defined[i]);
      }
    }
    return first;
  }

  Cells page(std::size_t column, std::size_t group, std::int64_t row) const {
    const std::string place = where(column);
    const RowGroup& rows = meta_.groups[group];
    const auto pages = index(column, group);
    const auto after = std::ranges::upper_bound(pages->data, row - rows.first, {}, &ParquetPage::first);
    const ParquetPage& found = *(after - 1);
    const auto dictionary = dictionary_of(column, group, *pages);
    return flat_cells(
        meta_.leaves[column],
        decode_page(file_, meta_.leaves[column], chunk(column, group), found.header, dictionary.get(), place),
        rows.first + found.first, found.header.values, place);
  }

  Cells lists(std::size_t column, std::size_t group) const {
    const std::string place = where(column);
    const ColumnChunk& own = chunk(column, group);
    const ParquetLeaf& leaf = meta_.leaves[column];
    require_memory(own.unpacked, place);
    const auto pages = index(column, group);
    const auto dictionary = dictionary_of(column, group, *pages);
    DecodedPage all;
    for (const ParquetPage& each : pages->data) {
      const DecodedPage page = decode_page(file_, leaf, own, each.header, dictionary.get(), place);
      const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      add(all.levels.repeated, page.levels.repeated);
      add(all.levels.defined, page.levels.defined);
      add(all.values.bytes, page.values.bytes);
      all.values.count += page.values.count;
    }
    std::vector<std::byte> there = as_type(std::move(all.values.bytes), leaf, place);
    return ListCells(leaf, all, meta_.groups[group]).cells(std::move(there), place);
  }

  // Where pages are is found once.
  std::shared_ptr<const ParquetPages> index(std::size_t column, std::size_t group) const {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = pages_.find({column, group}); found != pages_.end()) return found->second;
    }
    auto pages = std::make_shared<const ParquetPages>(pages_of(file_, chunk(column, group), where(column)));
    if (meta_.leaves[column].most_repeated == 0 && chunk(column, group).values != meta_.groups[group].rows)
      throw Error(ErrorCode::bad_file, "is damaged: a column has other rows than its group", where(column));
    const std::lock_guard lock(mutex_);
    return pages_[{column, group}] = std::move(pages);
  }

  // The last ones of a column are kept: threads that read ahead may be in two groups.
  struct KeptDictionary {
    std::size_t group = 0;
    std::shared_ptr<const Values> values;
  };
  std::shared_ptr<const Values> dictionary_of(std::size_t column, std::size_t group,
                                              const ParquetPages& pages) const {
    if (!pages.dictionary) return nullptr;
    constexpr std::size_t kept = 2;
    {
      const std::lock_guard lock(mutex_);
      if (column < dictionaries_.size())
        for (const KeptDictionary& each : dictionaries_[column])
          if (each.group == group) return each.values;
    }
    auto values = std::make_shared<const Values>(decode_dictionary(
        file_, meta_.leaves[column], chunk(column, group), *pages.dictionary, where(column)));
    const std::lock_guard lock(mutex_);
    if (column >= dictionaries_.size()) return values;
    auto& own = dictionaries_[column];
    if (own.size() == kept) own.erase(own.begin());
    own.push_back({group, values});
    return values;
  }

  StableFile file_;
  ParquetMeta meta_;
  std::vector<TableColumn> columns_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const ParquetPages>> pages_;
  mutable std::vector<std::vector<KeptDictionary>> dictionaries_;  // by column
};

}  // namespace

std::unique_ptr<ColumnTable> open_parquet_table(const std::filesystem::path& path) {
  return std::make_unique<ParquetTable>(path);
}

}  // namespace superstep::data::columns
