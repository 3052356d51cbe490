// The pages of one column in a group of rows: where they lie, and what is in them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/system/stable_file.h"
#include "superstep/file/columns/list_rows.h"
#include "superstep/file/columns/parquet_meta.h"
#include "superstep/file/columns/parquet_values.h"

namespace superstep::data::columns {

struct ParquetPage {
  PageHeader header;
  std::int64_t first = 0;  // of its values, in the chunk
};

struct ParquetPages {
  std::vector<ParquetPage> data;
  std::optional<PageHeader> dictionary;
};

// Reads the headers alone. Throws Error (bad_file) where they do not make up the chunk.
ParquetPages pages_of(const StableFile& file, const ColumnChunk& chunk, const std::string& where);

struct DecodedPage {
  Levels levels;  // of all values; of each kind none where all of them are the same by the schema
  Values values;  // those that are there
};

// Throws Error: bad_file (a checksum, levels or values that are not as the header says), unsupported.
DecodedPage decode_page(const StableFile& file, const ParquetLeaf& leaf, const ColumnChunk& chunk,
                        const PageHeader& header, const Values* dictionary, const std::string& where);
Values decode_dictionary(const StableFile& file, const ParquetLeaf& leaf, const ColumnChunk& chunk,
                         const PageHeader& header, const std::string& where);

}  // namespace superstep::data::columns
