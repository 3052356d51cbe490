// github.com/apache/parquet-format: README.md, Encodings.md, LogicalTypes.md and parquet.thrift, by whose
// numbers fields are named here.
#include "superstep/file/columns/parquet_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/file/columns/thrift.h"

namespace superstep::data::columns {
namespace {

using Type = ThriftReader::Type;

constexpr std::size_t most_leaves = 1 << 20;  // columns of a file: chosen
constexpr int deepest_schema = 64;            // groups in one another: chosen

struct LogicalType {
  int kind = 0;  // the number of its field: 1 text, 5 decimal, 10 whole number, 15 half precision
  int bits = 0;
  bool is_signed = true;
};

struct SchemaElement {
  std::string name;
  std::optional<std::int64_t> type, length, converted;
  std::int64_t repetition = 0, children = 0;  // 0 required, 1 optional, 2 repeated
  LogicalType logical;
};

LogicalType logical_type(ThriftReader& reader) {
  LogicalType logical;
  reader.structure([&](int id, Type type) {
    logical.kind = id;
    if (id != 10 || type != Type::structure) return false;
    reader.structure([&](int inner, Type inner_type) {
      if (inner == 1) return logical.bits = static_cast<int>(reader.integer(inner_type)), true;
      if (inner == 2) return logical.is_signed = reader.boolean(inner_type), true;
      return false;
    });
    return true;
  });
  return logical;
}

SchemaElement schema_element(ThriftReader& reader) {
  SchemaElement element;
  reader.structure([&](int id, Type type) {
    switch (id) {
      case 1: element.type = reader.integer(type); return true;
      case 2: element.length = reader.integer(type); return true;
      case 3: element.repetition = reader.integer(type); return true;
      case 4: element.name = reader.text(type); return true;
      case 5: element.children = reader.integer(type); return true;
      case 6: element.converted = reader.integer(type); return true;
      case 10:
        if (type != Type::structure) return false;
        element.logical = logical_type(reader);
        return true;
      default: return false;
    }
  });
  return element;
}

Packing packing_of(std::int64_t codec, std::string& why_not) {
  switch (codec) {
    case 0: return Packing::none;
    case 1: return Packing::snappy;
    case 2: return Packing::deflate;
    case 6: return Packing::zstd;
    case 7: return Packing::lz4;
    default: break;
  }
  constexpr const char* names[] = {"", "", "", "LZO", "Brotli", "LZ4 in Hadoop's frames"};
  why_not = codec >= 3 && codec <= 5 ? fmt::format("packed by {}", names[codec])
                                     : fmt::format("packed by codec {}", codec);
  return Packing::none;
}

// Field 3 of a chunk: where its pages are.
void chunk_meta(ThriftReader& reader, ColumnChunk& chunk) {
  std::int64_t data = -1, dictionary = -1, size = -1, unpacked = 0;
  reader.structure([&](int id, Type type) {
    switch (id) {
      case 4: chunk.packing = packing_of(reader.integer(type), chunk.why_not); return true;
      case 5: chunk.values = reader.integer(type); return true;
      case 6: unpacked = reader.integer(type); return true;
      case 7: size = reader.integer(type); return true;
      case 9: data = reader.integer(type); return true;
      case 11: dictionary = reader.integer(type); return true;
      default: return false;
    }
  });
  // Some writers put 0 where there is no dictionary.
  chunk.begin = static_cast<std::uint64_t>(dictionary > 0 ? std::min(dictionary, data) : data);
  chunk.size = static_cast<std::uint64_t>(size);
  chunk.unpacked = static_cast<double>(unpacked);
}

ColumnChunk column_chunk(ThriftReader& reader) {
  ColumnChunk chunk;
  bool encrypted = false, elsewhere = false;
  reader.structure([&](int id, Type type) {
    if (id == 3 && type == Type::structure) return chunk_meta(reader, chunk), true;
    elsewhere |= id == 1;
    encrypted |= id == 8 || id == 9;
    return false;
  });
  if (elsewhere) chunk.why_not = "in another file";
  if (encrypted) chunk.why_not = "encrypted";
  return chunk;
}

RowGroup row_group(ThriftReader& reader) {
  RowGroup group;
  reader.structure([&](int id, Type type) {
    if (id == 1) {
      reader.list(type, [&](Type) { group.chunks.push_back(column_chunk(reader)); });
      return true;
    }
    if (id == 3) return group.rows = reader.integer(type), true;
    return false;
  });
  return group;
}

std::pair<std::string, std::string> property(ThriftReader& reader) {
  std::pair<std::string, std::string> pair;
  reader.structure([&](int id, Type type) {
    if (id == 1) return pair.first = reader.text(type), true;
    if (id == 2) return pair.second = reader.text(type), true;
    return false;
  });
  return pair;
}

// Of a leaf that holds numbers: which.
std::optional<ElementType> integer_type(const SchemaElement& element) {
  if (element.logical.kind == 10) {
    switch (element.logical.bits) {
      case 8: return element.logical.is_signed ? ElementType::i8 : ElementType::u8;
      case 16: return element.logical.is_signed ? ElementType::i16 : ElementType::u16;
      case 32: return element.logical.is_signed ? ElementType::i32 : ElementType::u32;
      case 64: return element.logical.is_signed ? ElementType::i64 : ElementType::u64;
      default: return std::nullopt;
    }
  }
  if (element.logical.kind != 0 && element.logical.kind != 11) return std::nullopt;
  constexpr ElementType types[] = {ElementType::u8, ElementType::u16, ElementType::u32, ElementType::u64,
                                   ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64};
  const std::int64_t converted = element.converted.value_or(-1);
  if (converted >= 11 && converted <= 18) return types[converted - 11];
  if (converted >= 0) return std::nullopt;
  return element.type == 1 ? ElementType::i32 : ElementType::i64;
}

// The kinds of numbers that are no plain ones, by the numbers of their logical and their old type.
std::string words_of(const SchemaElement& element) {
  const std::int64_t converted = element.converted.value_or(-1);
  if (element.logical.kind == 5 || converted == 5) return "decimal numbers";
  if (element.logical.kind >= 6 && element.logical.kind <= 8) return "times";
  if ((converted >= 6 && converted <= 10) || element.type == 3) return "times";
  return "a kind of values that is not read";
}

void set_type(ParquetLeaf& leaf, const SchemaElement& element) {
  leaf.physical = static_cast<Physical>(*element.type);
  const std::size_t length = static_cast<std::size_t>(std::max<std::int64_t>(0, element.length.value_or(0)));
  switch (leaf.physical) {
    case Physical::boolean: leaf.column.type = ElementType::boolean; return;
    case Physical::f32: leaf.column.type = ElementType::f32; return;
    case Physical::f64: leaf.column.type = ElementType::f64; return;
    case Physical::i32:
    case Physical::i64:
      if (const auto type = integer_type(element)) {
        leaf.column.type = *type;
        const bool wide = size_in_bytes(*type) == 8;
        if (wide == (leaf.physical == Physical::i64)) return;
      }
      leaf.column.why_not = words_of(element);
      return;
    case Physical::bytes:
      if (element.logical.kind == 5 || element.converted == 5)
        leaf.column.why_not = words_of(element);
      else
        leaf.column.is_bytes = true;
      return;
    case Physical::fixed:
      leaf.width = length;
      leaf.column.type = ElementType::f16;
      if (element.logical.kind != 15 || length != 2)
        leaf.column.why_not = element.logical.kind == 5 || element.converted == 5 ? words_of(element)
                                                                                  : "bytes of a fixed length";
      return;
    default: leaf.column.why_not = words_of(element);
  }
}

// The tree of the schema, written depth first, as its leaves. Names of groups stand before a point; those of
// lists' inner groups, which every list has, do not.
class SchemaReader {
 public:
  SchemaReader(const std::vector<SchemaElement>& elements, const std::string& where)
      : elements_(elements), where_(where) {}

  std::vector<ParquetLeaf> leaves() {
    if (elements_.empty()) refuse();
    const std::int64_t children = elements_[at_++].children;
    for (std::int64_t i = 0; i < children; ++i) add({}, 0, 0, 0);
    if (at_ != elements_.size()) refuse();
    return std::move(leaves_);
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::bad_file, "is damaged: its schema is no tree of columns", where_);
  }

  void add(const std::string& prefix, int repeated, int defined, int depth) {
    if (at_ >= elements_.size() || depth > deepest_schema) refuse();
    const SchemaElement& element = elements_[at_++];
    const std::string name = is_inner_ ? prefix : prefix.empty() ? element.name : prefix + "." + element.name;
    repeated += element.repetition == 2;
    defined += element.repetition != 0;
    if (element.type) return add_leaf(element, name, repeated, defined);
    const bool list = element.logical.kind == 3 || element.converted == 3;
    const bool inner = (list || element.repetition == 2) && element.children == 1;
    const std::int64_t children = element.children;
    if (children < 1) refuse();
    for (std::int64_t i = 0; i < children; ++i) {
      is_inner_ = inner;
      add(name, repeated, defined, depth + 1);
    }
    is_inner_ = false;
  }

  void add_leaf(const SchemaElement& element, const std::string& name, int repeated, int defined) {
    if (*element.type < 0 || *element.type > 7 || leaves_.size() == most_leaves) refuse();
    ParquetLeaf leaf{.column = {.name = name},
                     .most_repeated = repeated,
                     .most_defined = defined,
                     .optional = element.repetition == 1};
    set_type(leaf, element);
    if (leaf.column.is_bytes && repeated > 0) leaf.column.why_not = "lists of texts";
    leaves_.push_back(std::move(leaf));
    is_inner_ = false;
  }

  const std::vector<SchemaElement>& elements_;
  const std::string& where_;
  std::size_t at_ = 0;
  bool is_inner_ = false;  // the next one has the name of the list that it is in
  std::vector<ParquetLeaf> leaves_;
};

// What the footer says is held against the file before anything is done by it.
void require_sound(ParquetMeta& meta, const StableFile& file, std::int64_t rows) {
  const std::string where = file.path().string();
  for (RowGroup& group : meta.groups) {
    group.first = meta.rows;
    if (group.rows < 0 || group.rows > std::numeric_limits<std::int64_t>::max() / 2 - meta.rows ||
        group.chunks.size() != meta.leaves.size())
      throw Error(ErrorCode::bad_file, "is damaged: a group of rows has not the columns of the schema",
                  where);
    meta.rows += group.rows;
    for (std::size_t i = 0; i < group.chunks.size(); ++i) {
      const ColumnChunk& chunk = group.chunks[i];
      if (!chunk.why_not.empty() && meta.leaves[i].column.why_not.empty())
        meta.leaves[i].column.why_not = chunk.why_not;
      if (chunk.why_not.empty() &&
          (chunk.begin > file.size() || chunk.size > file.size() - chunk.begin || chunk.values < group.rows))
        throw Error(ErrorCode::bad_file, "is damaged: a column's values lie beyond its end",
                    fmt::format("{}: column '{}'", where, printable(meta.leaves[i].column.name)));
    }
  }
  std::erase_if(meta.groups, [](const RowGroup& group) { return group.rows == 0; });
  if (meta.rows != rows)
    throw Error(ErrorCode::bad_file,
                fmt::format("is damaged: it says that it has {} rows, its groups have {}", rows, meta.rows),
                where);
}

std::vector<std::byte> footer_of(const StableFile& file) {
  constexpr std::uint64_t smallest = 12;  // a mark, the footer's length, a mark
  const std::string where = file.path().string();
  char end[8];
  if (file.size() < smallest)
    throw Error(ErrorCode::bad_file, "is cut short: a Parquet file ends with its footer", where);
  file.read(file.size() - sizeof end, std::as_writable_bytes(std::span(end)));
  if (std::memcmp(end + 4, "PARE", 4) == 0)
    throw Error(ErrorCode::unsupported, "is encrypted", where, "write it anew without encryption");
  if (std::memcmp(end + 4, "PAR1", 4) != 0)
    throw Error(ErrorCode::bad_file, "is cut short: it begins as Parquet and does not end so", where);
  std::uint32_t size = 0;
  std::memcpy(&size, end, sizeof size);
  if (size > file.size() - smallest)
    throw Error(ErrorCode::bad_file, "is damaged: its footer is longer than the file", where);
  constexpr double most_times = 64;  // what is made of a byte of it, at most about
  require_memory(most_times * static_cast<double>(size), where);
  std::vector<std::byte> footer(size);
  file.read(file.size() - sizeof end - size, footer);
  return footer;
}

void data_page(ThriftReader& reader, PageHeader& page) {
  page.kind = PageHeader::Kind::data;
  reader.structure([&](int id, Type type) {
    switch (id) {
      case 1: page.values = reader.integer(type); return true;
      case 2: page.encoding = reader.integer(type); return true;
      case 3: page.defined_encoding = reader.integer(type); return true;
      case 4: page.repeated_encoding = reader.integer(type); return true;
      default: return false;
    }
  });
}

void data_page_2(ThriftReader& reader, PageHeader& page) {
  page.kind = PageHeader::Kind::data_2;
  reader.structure([&](int id, Type type) {
    switch (id) {
      case 1: page.values = reader.integer(type); return true;
      case 4: page.encoding = reader.integer(type); return true;
      case 5: page.defined_bytes = static_cast<std::uint64_t>(reader.integer(type)); return true;
      case 6: page.repeated_bytes = static_cast<std::uint64_t>(reader.integer(type)); return true;
      case 7: page.is_packed = reader.boolean(type); return true;
      default: return false;
    }
  });
}

void dictionary_page(ThriftReader& reader, PageHeader& page) {
  page.kind = PageHeader::Kind::dictionary;
  reader.structure([&](int id, Type type) {
    if (id == 1) return page.values = reader.integer(type), true;
    if (id == 2) return page.encoding = reader.integer(type), true;
    return false;
  });
}

PageHeader parsed_header(std::span<const std::byte> bytes, const std::string& where) {
  ThriftReader reader(bytes, where);
  PageHeader page;
  reader.structure([&](int id, Type type) {
    switch (id) {
      case 2: page.unpacked = static_cast<std::uint64_t>(reader.integer(type)); return true;
      case 3: page.packed = static_cast<std::uint64_t>(reader.integer(type)); return true;
      case 4:
        page.has_sum = true;
        page.sum = static_cast<std::uint32_t>(reader.integer(type));
        return true;
      case 5: return type == Type::structure ? (data_page(reader, page), true) : false;
      case 7: return type == Type::structure ? (dictionary_page(reader, page), true) : false;
      case 8: return type == Type::structure ? (data_page_2(reader, page), true) : false;
      default: return false;
    }
  });
  page.begin = reader.at();
  return page;
}

}  // namespace

ParquetMeta read_parquet_meta(const StableFile& file) {
  const std::string where = file.path().string();
  const std::vector<std::byte> footer = footer_of(file);
  ThriftReader reader(footer, where);
  ParquetMeta meta;
  std::vector<SchemaElement> schema;
  std::int64_t rows = 0;
  reader.structure([&](int id, Type type) {
    switch (id) {
      case 2: reader.list(type, [&](Type) { schema.push_back(schema_element(reader)); }); return true;
      case 3: rows = reader.integer(type); return true;
      case 4: reader.list(type, [&](Type) { meta.groups.push_back(row_group(reader)); }); return true;
      case 5: reader.list(type, [&](Type) { meta.properties.insert(property(reader)); }); return true;
      default: return false;
    }
  });
  meta.leaves = SchemaReader(schema, where).leaves();
  require_sound(meta, file, rows);
  file.require_unchanged();
  return meta;
}

PageHeader read_page_header(const StableFile& file, std::uint64_t at, std::uint64_t end,
                            const std::string& where) {
  // Most have some ten bytes; those with the least and the largest text of a page may have more.
  constexpr std::uint64_t usual = 512, longest = 16 << 20;  // chosen
  for (std::uint64_t size = usual;; size *= 32) {
    std::vector<std::byte> bytes(std::min(size, end - at));
    file.read(at, bytes);
    try {
      PageHeader page = parsed_header(bytes, where);
      page.begin += at;
      if (page.values < 0 || page.values >> 31 || page.packed > end - page.begin || page.unpacked >> 31)
        throw Error(ErrorCode::bad_file, "is damaged: a page ends beyond its column", where);
      return page;
    } catch (const ThriftEnds&) {
      if (bytes.size() < size || size >= longest) throw;
    }
  }
}

}  // namespace superstep::data::columns
