// The schema of Arrow's messages, and where the parts of each column are in a batch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "superstep/file/columns/column_table.h"
#include "superstep/file/columns/flat_buffer.h"

namespace superstep::data::columns {

// What values lie in, by its numbers in a batch: the node counts what is missing, the buffer says which.
struct ArrowNode {
  std::size_t node = 0, buffer = 0;
};

// A list that values lie in: of a fixed length, or one between two of the offsets in the next buffer.
struct ArrowList {
  std::int64_t fixed = 0;  // 0: by offsets
  ArrowNode own = {};
  bool wide = false;  // offsets of 64 bits
};

struct ArrowLeaf {
  TableColumn column;
  std::vector<ArrowNode> parents;  // the structures that it is in
  std::vector<ArrowList> lists;    // the outermost first
  ArrowNode own;
  bool wide = false;               // of bytes: offsets of 64 bits
  std::vector<std::int64_t> said;  // the extents of a tensor, where the schema has them
};

struct ArrowSchema {
  std::vector<ArrowLeaf> leaves;
  // Of a batch. Views have more buffers, as many as the batch says, behind the first so many.
  std::size_t nodes = 0, buffers = 0;
  std::vector<std::size_t> views;
  std::map<std::string, std::string> properties;
};

// Throws Error: bad_file, unsupported (bytes in the other order).
ArrowSchema read_arrow_schema(const FlatTable& schema, const std::string& where);

}  // namespace superstep::data::columns
