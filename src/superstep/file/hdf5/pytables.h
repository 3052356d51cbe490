// Data frames as pandas keeps them in HDF5 (HDFStore, format "table" of PyTables): a group for each frame
// with one data set `table` of records: an index, `values_block_0`, `values_block_1`, ... of numbers or
// strings, and the columns' names as a Python list in the attribute `values_block_0_kind`. The layout was
// read off files of pandas 3.1.1 with PyTables 3.11.1; the files written here open there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

struct PandasFrame {
  std::vector<std::string> columns;                      // of the numbers, in the order of the blocks
  Tensor values;                                         // f32 [rows, columns]
  std::map<std::string, std::vector<std::string>> text;  // columns of strings
};

class PandasFile {
 public:
  explicit PandasFile(const std::filesystem::path& path);  // throws Error (not_found, bad_file)
  ~PandasFile();
  PandasFile(PandasFile&&) noexcept;
  std::vector<std::string> keys() const;  // frames at the top of the file
  std::int64_t rows(const std::string& key) const;
  // Rows [first, first + count) of a frame. Throws Error: not_found with the nearest key, bad_file naming the
  // frame (not a table of pandas, names that do not fit), invalid_argument (outside).
  PandasFrame read(const std::string& key, std::int64_t first, std::int64_t count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes to a temporary file beside `path`; close() puts it in place.
class PandasWriter {
 public:
  explicit PandasWriter(const std::filesystem::path& path);
  ~PandasWriter();
  PandasWriter(const PandasWriter&) = delete;
  PandasWriter& operator=(const PandasWriter&) = delete;

  // A frame of `rows` rows: columns of 32-bit floats, then columns of strings of at most `width` bytes.
  void create(const std::string& key, std::int64_t rows, const std::vector<std::string>& columns,
              const std::vector<std::string>& text_columns = {}, std::size_t width = 16);
  // Rows from `first` on: values row by row, and for each text column its strings.
  void write_rows(const std::string& key, std::int64_t first, std::span<const float> values,
                  const std::vector<std::vector<std::string>>& text = {});
  void close();  // throws Error (io)

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The strings of a list pickled by Python's protocol 0, as PyTables stores lists in attributes. Nothing is
// executed: what is no string is passed over. Throws Error (bad_file) on a text that is no such list.
std::vector<std::string> unpickle_strings(const std::string& pickled, const std::string& where);
std::string pickle_strings(const std::vector<std::string>& strings);

}  // namespace superstep::data
