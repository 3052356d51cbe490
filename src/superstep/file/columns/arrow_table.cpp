// Arrow's files (Feather, version 2) and streams: messages one behind another, a schema and then batches of
// rows (github.com/apache/arrow, docs/source/format/Columnar.rst, "Serialization and IPC").
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/tensor.h"
#include "superstep/file/columns/arrow_batch.h"
#include "superstep/file/columns/class_names.h"
#include "superstep/file/columns/tables.h"

namespace superstep::data::columns {
namespace {

constexpr std::string_view file_mark = "ARROW1";
constexpr std::uint32_t continues = 0xffffffff;
constexpr std::uint32_t longest_header = 1 << 30;            // of a message: chosen
constexpr std::int64_t most_values = std::int64_t{1} << 48;  // of a column in a batch: more than memory has
constexpr std::int64_t piece_bytes = 64 << 10;  // read around a row where nothing is packed: chosen

// The messages of a file, in their order.
class Messages {
 public:
  explicit Messages(const StableFile& file) : file_(file), where_(file.path().string()) {
    std::string begin(std::min<std::uint64_t>(8, file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(begin)));
    if (begin.starts_with("FEA1"))
      throw Error(ErrorCode::unsupported, "is Feather of version 1", where_,
                  "write it anew: pyarrow.feather.write_feather() writes version 2");
    if (begin.starts_with(file_mark)) at_ = 8;
  }

  // False at the end.
  bool next() {
    if (file_.size() - at_ < 4) return false;
    std::uint32_t size = number();
    if (size == continues) size = file_.size() - at_ < 4 ? 0 : number();  // before version 0.15: no such mark
    if (size == 0) return false;
    if (size > longest_header || size > file_.size() - at_) damaged();
    require_memory(static_cast<double>(size), where_);
    header_.resize(size);
    file_.read(at_, header_);
    at_ += size;
    const FlatTable message = root();
    const auto body = message.number<std::int64_t>(3, 0);
    if (body < 0 || static_cast<std::uint64_t>(body) > file_.size() - at_) damaged();
    body_ = at_, body_size_ = static_cast<std::uint64_t>(body);
    at_ += body_size_;
    return true;
  }

  int kind() const { return root().number<std::uint8_t>(1, 0); }
  FlatTable table() const {
    const auto table = root().table(2);
    if (!table) damaged();
    return *table;
  }
  std::uint64_t body() const { return body_; }
  std::uint64_t body_size() const { return body_size_; }

 private:
  FlatTable root() const { return FlatTable::root(header_, where_); }
  std::uint32_t number() {
    std::uint32_t value = 0;
    file_.read(at_, std::as_writable_bytes(std::span(&value, 1)));
    at_ += sizeof value;
    return value;
  }
  [[noreturn]] void damaged() const {
    throw Error(ErrorCode::bad_file, "is cut short, or damaged: a message ends beyond it", where_);
  }

  const StableFile& file_;
  std::string where_;
  std::uint64_t at_ = 0, body_ = 0, body_size_ = 0;
  std::vector<std::byte> header_;
};

// Values of one column that lie side by side, and the rows that they are.
struct Range {
  std::int64_t first = 0, count = 0;
  bool regular = true;  // all lists are as long as those of the first row
};

class ArrowTable : public ColumnTable {
 public:
  explicit ArrowTable(const std::filesystem::path& path) : file_(path) {
    read_messages();
    for (std::size_t i = 0; i < schema_.leaves.size(); ++i) {
      set_shape(schema_.leaves[i]);
      columns_.push_back(schema_.leaves[i].column);
      direct_.push_back(lies_as_it_is(schema_.leaves[i]));
    }
    if (const auto said = schema_.properties.find("huggingface"); said != schema_.properties.end())
      set_class_names(columns_, said->second);
  }

  const std::vector<TableColumn>& columns() const override { return columns_; }
  std::int64_t rows() const override { return rows_; }
  bool is_direct(std::size_t column) const override { return direct_[column]; }
  const std::filesystem::path& path() const override { return file_.path(); }
  void require_unchanged() const override { file_.require_unchanged(); }

  // Packed to a third, about: the lengths stand before each buffer.
  double unpacked_bytes() const override {
    constexpr double times = 3;
    double bytes = 0;
    for (const ArrowBatch& batch : batches_)
      for (const ArrowBuffer& buffer : batch.buffers)
        if (batch.is_packed) bytes += times * static_cast<double>(buffer.size);
    return bytes;
  }
  std::vector<std::int64_t> groups() const override {
    std::vector<std::int64_t> firsts;
    for (const ArrowBatch& batch : batches_) firsts.push_back(batch.first);
    return firsts;
  }

  std::shared_ptr<const Cells> load(std::size_t column, std::int64_t row) const override {
    const ArrowLeaf& leaf = schema_.leaves[column];
    const ArrowBatch& batch = batch_of(row);
    const std::int64_t step = batch.is_packed ? batch.rows : piece_rows(leaf, batch);
    const std::int64_t first = (row - batch.first) / step * step, count = std::min(step, batch.rows - first);
    const std::string place = where(leaf);
    BatchReader reader(file_, batch, place);
    auto cells = std::make_shared<const Cells>(cells_of(leaf, reader, batch, first, count));
    file_.require_unchanged();
    return cells;
  }

  void read_direct(std::size_t column, std::int64_t first, std::int64_t count, std::byte* to) const override {
    const ArrowLeaf& leaf = schema_.leaves[column];
    const std::size_t row_bytes = leaf.column.row_bytes();
    for (std::int64_t done = 0; done < count;) {
      const ArrowBatch& batch = batch_of(first + done);
      const std::int64_t inside = first + done - batch.first,
                         some = std::min(count - done, batch.rows - inside);
      file_.read(
          batch.buffers[leaf.own.buffer + 1].begin + static_cast<std::uint64_t>(inside) * row_bytes,
          {to + static_cast<std::size_t>(done) * row_bytes, static_cast<std::size_t>(some) * row_bytes});
      done += some;
    }
  }

 private:
  std::string where(const ArrowLeaf& leaf) const {
    return fmt::format("{}: column '{}'", file_.path().string(), printable(leaf.column.name));
  }
  const ArrowBatch& batch_of(std::int64_t row) const {
    return *(std::ranges::upper_bound(batches_, row, {}, &ArrowBatch::first) - 1);
  }

  void read_messages() {
    constexpr int schema = 1, record_batch = 3;
    const std::string place = file_.path().string();
    Messages messages(file_);
    InterruptCheck stop;
    bool has_schema = false;
    while (messages.next()) {
      if (messages.kind() == schema && !has_schema) {
        schema_ = read_arrow_schema(messages.table(), place);
        has_schema = true;
      }
      if (messages.kind() == record_batch && has_schema) add_batch(messages, place);
      stop.throw_if_due(place);
    }
    file_.require_unchanged();
    if (!has_schema) throw Error(ErrorCode::bad_file, "is damaged: it has no schema", place);
  }

  void add_batch(const Messages& messages, const std::string& place) {
    ArrowBatch batch =
        read_arrow_batch(messages.table(), schema_, messages.body(), messages.body_size(), place);
    if (batch.rows > most_values || batch.rows > std::numeric_limits<std::int64_t>::max() / 2 - rows_)
      throw Error(ErrorCode::bad_file, "is damaged: a batch says more rows than there can be", place);
    batch.first = rows_;
    rows_ += batch.rows;
    if (batch.rows > 0) batches_.push_back(std::move(batch));
  }

  // As the first row has it, or the schema says it.
  void set_shape(ArrowLeaf& leaf) {
    if (leaf.lists.empty() || !leaf.column.why_not.empty() || batches_.empty()) return;
    const std::string place = where(leaf);
    BatchReader reader(file_, batches_.front(), place);
    std::vector<std::int64_t> extents;
    std::int64_t at = 0;
    for (const ArrowList& list : leaf.lists) {
      if (list.fixed > 0) {
        extents.push_back(list.fixed);
        at *= list.fixed;
      } else {
        const auto offsets = reader.offsets(list.own.buffer + 1, list.wide, at, 1);
        extents.push_back(offsets[1] - offsets[0]);
        at = offsets[0];
      }
      if (at > most_values) throw Error(ErrorCode::bad_file, "is damaged: its lists have no end", place);
    }
    if (std::ranges::find(extents, 0) != extents.end()) {
      leaf.column.why_not = "lists, the first of which is empty";
      return;
    }
    double count = 1;
    for (const std::int64_t extent : extents) count *= static_cast<double>(extent);
    if (count > static_cast<double>(most_values))
      throw Error(ErrorCode::bad_file, "is damaged: its lists have no end", place);
    leaf.column.row = Shape(extents);
    const bool sound = std::ranges::all_of(leaf.said, [](std::int64_t extent) { return extent > 0; });
    if (leaf.said.empty() || !sound || leaf.lists.size() != 1) return;
    double said = 1;
    for (const std::int64_t extent : leaf.said) said *= static_cast<double>(extent);
    if (said == count) leaf.column.row = Shape(leaf.said);
  }

  // Numbers of a fixed number a row, none missing, not packed, in a buffer that has them all.
  bool lies_as_it_is(const ArrowLeaf& leaf) const {
    if (leaf.column.is_bytes || leaf.column.type == ElementType::boolean || !leaf.column.why_not.empty())
      return false;
    if (std::ranges::any_of(leaf.lists, [](const ArrowList& list) { return list.fixed == 0; })) return false;
    return std::ranges::all_of(batches_, [&](const ArrowBatch& batch) {
      const auto is_whole = [&](const ArrowNode& node) { return batch.missing[node.node] == 0; };
      const double bytes = static_cast<double>(leaf.column.row_bytes()) * static_cast<double>(batch.rows);
      return !batch.is_packed && is_whole(leaf.own) && std::ranges::all_of(leaf.parents, is_whole) &&
             std::ranges::all_of(leaf.lists, [&](const ArrowList& list) { return is_whole(list.own); }) &&
             static_cast<double>(batch.buffers[leaf.own.buffer + 1].size) >= bytes;
    });
  }

  std::int64_t piece_rows(const ArrowLeaf& leaf, const ArrowBatch& batch) const {
    const std::size_t data = leaf.own.buffer + (leaf.column.is_bytes ? 2 : 1);
    const auto bytes = static_cast<std::int64_t>(batch.buffers[data].size);
    return std::clamp<std::int64_t>(piece_bytes / std::max<std::int64_t>(1, bytes / batch.rows), 1,
                                    batch.rows);
  }

  // The values of these rows, by the lists that they lie in.
  Range range_of(const ArrowLeaf& leaf, BatchReader& reader, std::int64_t first, std::int64_t count) const {
    Range range{first, count};
    const Shape& row = leaf.column.row;
    for (std::size_t level = 0; level < leaf.lists.size() && range.regular; ++level) {
      const ArrowList& list = leaf.lists[level];
      const std::vector<bool> there = reader.there(list.own, range.first, range.count);
      range.regular = std::ranges::find(there, false) == there.end();
      if (list.fixed > 0) {
        range.first *= list.fixed, range.count *= list.fixed;
      } else {
        const auto offsets = reader.offsets(list.own.buffer + 1, list.wide, range.first, range.count);
        const std::int64_t extent = row[static_cast<int>(level)];
        for (std::size_t i = 1; i < offsets.size(); ++i)
          range.regular &= offsets[i] - offsets[i - 1] == extent;
        range.first = offsets.front(), range.count *= extent;
      }
      if (range.first > most_values || range.count > most_values)
        throw Error(ErrorCode::bad_file, "is damaged: its lists have no end", where(leaf));
    }
    return range;
  }

  Cells cells_of(const ArrowLeaf& leaf, BatchReader& reader, const ArrowBatch& batch, std::int64_t first,
                 std::int64_t count) const {
    if (leaf.column.is_bytes) return texts_of(leaf, reader, batch, first, count);
    const Range range = range_of(leaf, reader, first, count);
    if (range.regular) return numbers_of(leaf, reader, batch, first, count, range);
    Cells cells{.first = batch.first + first, .rows = count};
    cells.bytes.resize(static_cast<std::size_t>(count) * leaf.column.row_bytes());
    cells.missing.resize(static_cast<std::size_t>(count), true);
    for (std::int64_t i = 0; count > 1 && i < count; ++i) {
      const Cells one = cells_of(leaf, reader, batch, first + i, 1);
      std::ranges::copy(
          one.bytes, cells.bytes.begin() +
                         static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * leaf.column.row_bytes()));
      cells.missing[static_cast<std::size_t>(i)] = !one.missing.empty() && one.missing[0];
    }
    return cells;
  }

  Cells texts_of(const ArrowLeaf& leaf, BatchReader& reader, const ArrowBatch& batch, std::int64_t first,
                 std::int64_t count) const {
    Cells cells{.first = batch.first + first, .rows = count};
    const auto offsets = reader.offsets(leaf.own.buffer + 1, leaf.wide, first, count);
    cells.bytes = reader.part(leaf.own.buffer + 2, static_cast<std::uint64_t>(offsets.front()),
                              static_cast<std::uint64_t>(offsets.back() - offsets.front()));
    for (const std::int64_t offset : offsets)
      cells.begins.push_back(static_cast<std::uint64_t>(offset - offsets.front()));
    const std::vector<bool> there = there_of(leaf, reader, {first, count}, first, count);
    for (const bool each : there) cells.missing.push_back(!each);
    return cells;
  }

  // By value; a structure that is missing has none in it.
  std::vector<bool> there_of(const ArrowLeaf& leaf, BatchReader& reader, const Range& range,
                             std::int64_t first, std::int64_t count) const {
    std::vector<bool> there = reader.there(leaf.own, range.first, range.count);
    for (const ArrowNode& parent : leaf.parents) {
      const std::vector<bool> rows = reader.there(parent, first, count);
      if (rows.empty()) continue;
      there.resize(static_cast<std::size_t>(range.count), true);
      const std::size_t each = static_cast<std::size_t>(range.count / count);
      for (std::size_t i = 0; i < there.size(); ++i) there[i] = there[i] && rows[i / each];
    }
    return there;
  }

  Cells numbers_of(const ArrowLeaf& leaf, BatchReader& reader, const ArrowBatch& batch, std::int64_t first,
                   std::int64_t count, const Range& range) const {
    Cells cells{.first = batch.first + first, .rows = count};
    const std::size_t width = size_in_bytes(leaf.column.type), values = leaf.own.buffer + 1;
    if (leaf.column.type == ElementType::boolean)
      for (const bool bit : reader.bits(values, range.first, range.count))
        cells.bytes.push_back(std::byte{bit});
    else
      cells.bytes = reader.part(values, static_cast<std::uint64_t>(range.first) * width,
                                static_cast<std::uint64_t>(range.count) * width);
    const std::vector<bool> there = there_of(leaf, reader, range, first, count);
    if (std::ranges::find(there, false) == there.end()) return cells;
    if (!is_floating(leaf.column.type)) {
      cells.missing.resize(static_cast<std::size_t>(count));
      const std::size_t each = there.size() / static_cast<std::size_t>(count);
      for (std::size_t i = 0; i < there.size(); ++i)
        if (!there[i]) cells.missing[i / each] = true;
      return cells;
    }
    const Tensor nan = Tensor::full(leaf.column.type, Shape{}, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < there.size(); ++i)
      if (!there[i]) std::memcpy(cells.bytes.data() + i * width, nan.bytes(), width);
    return cells;
  }

  StableFile file_;
  ArrowSchema schema_;
  std::vector<ArrowBatch> batches_;
  std::int64_t rows_ = 0;
  std::vector<TableColumn> columns_;
  std::vector<bool> direct_;
};

}  // namespace

std::unique_ptr<ColumnTable> open_arrow_table(const std::filesystem::path& path) {
  return std::make_unique<ArrowTable>(path);
}

}  // namespace superstep::data::columns
