// The footer of a Parquet file, and the headers of its pages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "superstep/base/system/stable_file.h"
#include "superstep/file/columns/column_table.h"
#include "superstep/file/packing/packing.h"

namespace superstep::data::columns {

// How values lie in the file (parquet.thrift, Type).
enum class Physical : std::uint8_t { boolean, i32, i64, i96, f32, f64, bytes, fixed };

// A column of the schema: a leaf of its tree.
struct ParquetLeaf {
  TableColumn column;  // its row is known once the first values are
  Physical physical = Physical::i32;
  std::size_t width = 0;  // of a `fixed` one, in bytes
  int most_repeated = 0;  // repetition level of values in lists
  int most_defined = 0;   // definition level of a value that is there
  bool optional = false;  // whether the last of these levels says that the value itself is there
};

// The values of one column in a group of rows.
struct ColumnChunk {
  std::uint64_t begin = 0, size = 0;  // in the file
  std::int64_t values = 0;            // empty ones counted
  double unpacked = 0;                // bytes
  Packing packing = Packing::none;
  std::string why_not;  // it cannot be read: "packed by Brotli"
};

struct RowGroup {
  std::int64_t first = 0, rows = 0;
  std::vector<ColumnChunk> chunks;  // by leaf
};

struct ParquetMeta {
  std::vector<ParquetLeaf> leaves;
  std::vector<RowGroup> groups;
  std::int64_t rows = 0;
  std::map<std::string, std::string> properties;  // texts of those who wrote it
};

ParquetMeta read_parquet_meta(const StableFile& file);

struct PageHeader {
  enum class Kind : std::uint8_t { data, index, dictionary, data_2, other };
  Kind kind = Kind::other;
  std::uint64_t packed = 0, unpacked = 0;  // bytes
  bool has_sum = false;
  std::uint32_t sum = 0;  // CRC-32 of the packed bytes
  std::int64_t values = 0;
  std::int64_t encoding = 0;
  std::int64_t defined_encoding = 3, repeated_encoding = 3;
  // Of the second kind of data pages: levels lie unpacked before the values.
  std::uint64_t defined_bytes = 0, repeated_bytes = 0;
  bool is_packed = true;
  std::uint64_t begin = 0;  // of what follows it, in the file
};

// The header that begins at byte `at` of the file; the page ends before `end`.
PageHeader read_page_header(const StableFile& file, std::uint64_t at, std::uint64_t end,
                            const std::string& where);

}  // namespace superstep::data::columns
