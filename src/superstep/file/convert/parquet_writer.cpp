// Parquet (github.com/apache/parquet-format): a group of rows a block, a page of a column about every
// megabyte, values as they are, packed by zstd where this program has it. What a sample has several of is
// lists in one another; pictures are PNG, which other readers take for bytes.
#include <fmt/format.h>
#include <zlib.h>
#ifdef SUPERSTEP_ZSTD
#include <zstd.h>
#endif

#include <bit>
#include <cstring>

#include "superstep/base/encoding/base64.h"
#include "superstep/base/error.h"
#include "superstep/file/columns/list_rows.h"
#include "superstep/file/columns/thrift_writer.h"
#include "superstep/file/convert/record_writer.h"

namespace superstep::data {
namespace {

using columns::ThriftWriter;

constexpr std::size_t page_bytes = 1 << 20;  // about: chosen, as other writers have it
enum Physical : int { boolean = 0, int32 = 1, int64 = 2, floating = 4, doubled = 5, bytes = 6, fixed = 7 };

struct ColumnType {
  int physical = bytes;
  std::string logical;  // of LogicalType; empty: none
};

std::string whole_number(int bits, bool is_signed) {
  const std::string integer =
      ThriftWriter().byte(1, static_cast<std::int8_t>(bits)).boolean(2, is_signed).end();
  return ThriftWriter().structure(10, integer).end();
}

ColumnType type_of(const SourceArray& array) {
  if (is_of_pictures(array)) return {bytes, ""};
  switch (array.type) {
    case ElementType::f64: return {doubled, ""};
    case ElementType::f32: return {floating, ""};
    case ElementType::f16: return {fixed, ThriftWriter().structure(15, ThriftWriter().end()).end()};
    case ElementType::i64: return {int64, ""};
    case ElementType::i32: return {int32, ""};
    case ElementType::i16: return {int32, whole_number(16, true)};
    case ElementType::i8: return {int32, whole_number(8, true)};
    case ElementType::u64: return {int64, whole_number(64, false)};
    case ElementType::u32: return {int32, whole_number(32, false)};
    case ElementType::u16: return {int32, whole_number(16, false)};
    case ElementType::u8: return {int32, whole_number(8, false)};
    case ElementType::boolean: return {boolean, ""};
    default: break;
  }
  throw Error(ErrorCode::internal, fmt::format("Parquet has no type for {}", name_of(array.type)));
}

int lists_of(const SourceArray& array) { return is_of_pictures(array) ? 0 : array.row.rank(); }

// A leaf, or the groups of lists around it; all of it is there in every row.
std::string schema_of(const SourceArray& array, std::size_t& elements) {
  const ColumnType type = type_of(array);
  std::string schema;
  std::string name = array.name;
  constexpr int required = 0, repeated = 2, list = 3;
  for (int i = 0; i < lists_of(array); ++i) {
    const std::string is_list = ThriftWriter().structure(3, ThriftWriter().end()).end();
    schema += ThriftWriter()
                  .integer(3, required)
                  .text(4, name)
                  .integer(5, 1)
                  .integer(6, list)
                  .structure(10, is_list)
                  .end();
    schema += ThriftWriter().integer(3, repeated).text(4, "list").integer(5, 1).end();
    elements += 2;
    name = "element";
  }
  ThriftWriter leaf;
  leaf.integer(1, type.physical);
  if (type.physical == fixed) leaf.integer(2, 2);
  leaf.integer(3, required).text(4, name);
  if (!type.logical.empty()) leaf.structure(10, type.logical);
  ++elements;
  return schema + leaf.end();
}

std::string path_of(const SourceArray& array, std::size_t& parts) {
  std::string path = ThriftWriter::element_text(array.name);
  parts = 1;
  for (int i = 0; i < lists_of(array); ++i, parts += 2)
    path += ThriftWriter::element_text("list") + ThriftWriter::element_text("element");
  return path;
}

// Numbers of a few bits side by side, behind their length (Encodings.md, RLE / bit-packing hybrid).
std::string levels_of(std::span<const std::uint8_t> levels, int most) {
  const int width = std::bit_width(static_cast<unsigned>(most));
  const std::size_t groups = (levels.size() + 7) / 8;
  std::string packed(groups * static_cast<std::size_t>(width), '\0');
  for (std::size_t i = 0, bit = 0; i < levels.size(); ++i)
    for (int b = 0; b < width; ++b, ++bit)
      if (levels[i] >> b & 1) packed[bit / 8] = static_cast<char>(packed[bit / 8] | 1 << bit % 8);
  std::string runs;
  for (std::uint64_t head = groups << 1 | 1;; head >>= 7) {
    runs += static_cast<char>(head < 0x80 ? head : head | 0x80);
    if (head < 0x80) break;
  }
  runs += packed;
  const auto size = static_cast<std::uint32_t>(runs.size());
  std::string text(sizeof size, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  return text + runs;
}

template <class T>
void put_wide(const Tensor& values, std::string& to) {
  for (const T value : values.as<T>()) {
    const auto wide = static_cast<std::int32_t>(value);
    to.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
}

std::string bits_of_booleans(const Tensor& values) {
  const auto from = values.as<bool>();
  std::string packed((from.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i]) packed[i / 8] = static_cast<char>(packed[i / 8] | 1 << i % 8);
  return packed;
}

std::string pngs_of(const Tensor& rows, const SourceArray& array) {
  std::string text;
  for (std::int64_t i = 0; i < rows.shape()[0]; ++i) {
    Tensor one(array.type, array.row);
    std::memcpy(one.bytes(), rows.bytes() + static_cast<std::size_t>(i) * one.byte_count(), one.byte_count());
    const std::string png = png_of(one);
    const auto size = static_cast<std::uint32_t>(png.size());
    text.append(reinterpret_cast<const char*>(&size), sizeof size).append(png);
  }
  return text;
}

std::string values_of(const Tensor& rows, const SourceArray& array) {
  std::string text;
  if (is_of_pictures(array)) return pngs_of(rows, array);
  switch (array.type) {
    case ElementType::boolean: return bits_of_booleans(rows);
    case ElementType::i8: put_wide<std::int8_t>(rows, text); return text;
    case ElementType::u8: put_wide<std::uint8_t>(rows, text); return text;
    case ElementType::i16: put_wide<std::int16_t>(rows, text); return text;
    case ElementType::u16: put_wide<std::uint16_t>(rows, text); return text;
    default: return {reinterpret_cast<const char*>(rows.bytes()), rows.byte_count()};
  }
}

#ifdef SUPERSTEP_ZSTD
constexpr int codec = 6;
std::string packed(const std::string& page) {
  constexpr int level = 1;  // chosen: as fast as the disk
  std::string to(ZSTD_compressBound(page.size()), '\0');
  const std::size_t size = ZSTD_compress(to.data(), to.size(), page.data(), page.size(), level);
  if (ZSTD_isError(size)) throw Error(ErrorCode::internal, "a page could not be packed by zstd");
  to.resize(size);
  return to;
}
#else
constexpr int codec = 0;
std::string packed(const std::string& page) { return page; }
#endif

struct Page {
  std::string bytes;  // its header before them
  std::size_t unpacked = 0;
  std::int64_t values = 0;
};

Page page_of(const Tensor& rows, const SourceArray& array) {
  const int lists = lists_of(array);
  const std::int64_t count = rows.shape()[0], each = lists > 0 ? array.row.element_count() : 1;
  std::string page;
  if (lists > 0) {
    const std::vector<std::uint8_t> pattern = columns::pattern_of(array.row.extents());
    std::vector<std::uint8_t> repeated,
        defined(static_cast<std::size_t>(count * each), static_cast<std::uint8_t>(lists));
    for (std::int64_t i = 0; i < count; ++i) repeated.insert(repeated.end(), pattern.begin(), pattern.end());
    page = levels_of(repeated, lists) + levels_of(defined, lists);
  }
  page += values_of(rows, array);
  const std::string stored = packed(page);
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(stored.data()), stored.size());
  constexpr int plain = 0, runs = 3;
  const std::string head =
      ThriftWriter().integer(1, count * each).integer(2, plain).integer(3, runs).integer(4, runs).end();
  const std::string header = ThriftWriter()
                                 .integer(1, 0)
                                 .integer(2, static_cast<std::int64_t>(page.size()))
                                 .integer(3, static_cast<std::int64_t>(stored.size()))
                                 .integer(4, static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)))
                                 .structure(5, head)
                                 .end();
  return {header + stored, header.size() + page.size(), count * each};
}

class ParquetWriter : public SampleWriter {
 public:
  ParquetWriter(const WriterPlace& place, SampleArraysToWrite arrays)
      : ParquetWriter(place, std::move(arrays),
                      place.mark.empty() ? nlohmann::json::object() : read_mark(place)) {
    if (file_.length() == 0) put("PAR1");
  }

  // A group of rows.
  void write(std::span<const Tensor> samples, ThreadPool& pool) override {
    const std::int64_t rows = samples.front().shape()[0];
    std::string chunks;
    std::int64_t bytes_of_group = 0;
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      chunks += ThriftWriter()
                    .integer(2, at(), true)
                    .structure(3, chunk(samples[i], arrays_[i], bytes_of_group, pool))
                    .end();
    groups_ += ThriftWriter()
                   .structures(1, arrays_.size(), chunks)
                   .integer(2, bytes_of_group, true)
                   .integer(3, rows, true)
                   .end();
    ++group_count_;
    rows_ += rows;
  }

  void close() override {
    std::size_t elements = 1;
    std::string schema =
        ThriftWriter().text(4, "schema").integer(5, static_cast<std::int64_t>(arrays_.size())).end();
    for (const SourceArray& array : arrays_) schema += schema_of(array, elements);
    const std::string footer = ThriftWriter()
                                   .integer(1, 2)
                                   .structures(2, elements, schema)
                                   .integer(3, rows_, true)
                                   .structures(4, group_count_, groups_)
                                   .text(6, "superstep")
                                   .end();
    put(footer);
    const auto size = static_cast<std::uint32_t>(footer.size());
    put({reinterpret_cast<const char*>(&size), sizeof size});
    put("PAR1");
  }

  std::string mark() override {
    file_.sync();
    return nlohmann::json{{"bytes", file_.length()},
                          {"rows", rows_},
                          {"group_count", group_count_},
                          {"groups", base64_encode(std::as_bytes(std::span(groups_)))}}
        .dump();
  }

 private:
  ParquetWriter(const WriterPlace& place, SampleArraysToWrite arrays, const nlohmann::json& mark)
      : file_(place.path, place.shown, mark.value("bytes", std::uint64_t{0})),
        arrays_(std::move(arrays)),
        group_count_(mark.value("group_count", std::size_t{0})),
        rows_(mark.value("rows", std::int64_t{0})) {
    const auto groups = base64_decode(mark.value("groups", std::string()));
    if (!groups) throw Error(ErrorCode::bad_file, "is not what was left to go on with", place.shown);
    groups_.assign(reinterpret_cast<const char*>(groups->data()), groups->size());
  }

  void put(std::string_view text) { file_.write(text); }
  std::int64_t at() const { return static_cast<std::int64_t>(file_.length()); }

  // The pages of one column, made by all threads; what says where they are.
  std::string chunk(const Tensor& rows, const SourceArray& array, std::int64_t& bytes_of_group,
                    ThreadPool& pool) {
    const std::int64_t count = rows.shape()[0];
    const auto each = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(page_bytes / std::max<std::size_t>(1, array.row_bytes())));
    std::vector<Page> pages(static_cast<std::size_t>((count + each - 1) / each));
    pool.parallel_for(static_cast<std::int64_t>(pages.size()), [&](std::int64_t i, int) {
      SourceArray some = array;
      some.rows = std::min(each, count - i * each);
      Tensor own(some.type, some.shape());
      std::memcpy(own.bytes(), rows.bytes() + static_cast<std::size_t>(i * each) * array.row_bytes(),
                  own.byte_count());
      pages[static_cast<std::size_t>(i)] = page_of(own, array);
    });
    const std::int64_t begin = at();
    std::int64_t values = 0, unpacked = 0;
    for (const Page& page : pages) {
      put(page.bytes);
      values += page.values, unpacked += static_cast<std::int64_t>(page.unpacked);
    }
    bytes_of_group += unpacked;
    std::size_t parts = 0;
    const std::string path = path_of(array, parts);
    return ThriftWriter()
        .integer(1, type_of(array).physical)
        .list(2, 5, 2, ThriftWriter::element_integer(0) + ThriftWriter::element_integer(3))
        .list(3, 8, parts, path)
        .integer(4, codec)
        .integer(5, values, true)
        .integer(6, unpacked, true)
        .integer(7, at() - begin, true)
        .integer(9, begin, true)
        .end();
  }

  OutputFile file_;
  SampleArraysToWrite arrays_;
  std::string groups_;
  std::size_t group_count_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<SampleWriter> open_parquet_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                   std::int64_t) {
  return std::make_unique<ParquetWriter>(place, std::move(arrays));
}

}  // namespace superstep::data
