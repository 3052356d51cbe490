// A table in a file, column by column: what sources of such tables are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/shape.h"

namespace superstep::data::columns {

struct TableColumn {
  std::string name;
  ElementType type = ElementType::f32;  // of its numbers
  Shape row = {};                       // of the numbers of a row
  bool is_bytes = false;                // a row is bytes of any length: a text, a picture
  std::string why_not = {};             // what it is that is not read: "decimal numbers"; empty: it is read
  std::vector<std::string> classes = {};

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(row.element_count()) * size_in_bytes(type);
  }
};

// Values of one column, of rows that follow one another.
struct Cells {
  std::int64_t first = 0, rows = 0;
  std::vector<std::byte> bytes =
      {};  // numbers, row behind row; or what the rows' bytes are, one behind another
  std::vector<std::uint64_t> begins = {};  // of each row's bytes, and the end; of numbers empty
  std::vector<bool> missing = {};          // rows without a value; empty: all have one

  bool holds(std::int64_t row) const { return row >= first && row < first + rows; }
  std::size_t size() const { return bytes.size() + begins.size() * sizeof(std::uint64_t); }
};

// Of floating point, what has no value is NaN.
class ColumnTable {
 public:
  virtual ~ColumnTable() = default;
  virtual const std::vector<TableColumn>& columns() const = 0;
  virtual std::int64_t rows() const = 0;
  // Where a row, and those around it, lie in one piece that is unpacked as a whole. Thread-safe. Throws Error
  // (bad_file, unsupported, out_of_memory) naming file and column.
  virtual std::shared_ptr<const Cells> load(std::size_t column, std::int64_t row) const = 0;

  // Whether the numbers of a column lie in the file as they are, so that any row is read by itself. Then
  // read_direct() does.
  virtual bool is_direct(std::size_t column) const = 0;
  virtual void read_direct(std::size_t column, std::int64_t first, std::int64_t count,
                           std::byte* to) const = 0;

  // What all columns are unpacked to, in bytes, where they are packed; else 0. And which rows are packed
  // together: the first ones.
  virtual double unpacked_bytes() const = 0;
  virtual std::vector<std::int64_t> groups() const = 0;

  virtual const std::filesystem::path& path() const = 0;
  virtual void require_unchanged() const = 0;
};

}  // namespace superstep::data::columns
