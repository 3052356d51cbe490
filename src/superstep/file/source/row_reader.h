// Rows of one array, wherever they lie: what forms of files with arrays one behind the other are made of.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "superstep/base/system/stable_file.h"
#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// Thread-safe. `to` has room for all of `rows`; errors need not name the place.
class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual void read(std::span<const std::int64_t> rows, std::byte* to) const = 0;
};

// Row-major elements in a file, row behind row.
struct FileRows {
  std::uint64_t begin = 0;    // of the first row, in bytes from the file's beginning
  std::size_t row_bytes = 0;  // of each
  std::size_t swapped = 0;    // the bytes of an element, where their order is the other one; else 0
  bool boolean = false;       // any other byte than 0 stands for true
};
std::unique_ptr<RowReader> rows_of_file(std::shared_ptr<const StableFile> file, const FileRows& place);

// Of an array that can only be had as a whole (compressed, column-major): loaded when a row is first wanted.
std::unique_ptr<RowReader> rows_of_tensor(std::size_t row_bytes, std::function<Tensor()> load);

// Row by row in runs: `copy(first, count, to)` for rows that follow one another.
void for_runs(std::span<const std::int64_t> rows, std::size_t row_bytes, std::byte* to,
              const std::function<void(std::int64_t first, std::int64_t count, std::byte* to)>& copy);

// A source of such arrays.
class ArraySource : public SampleSource {
 public:
  // `named`: how errors name an array: "array", "data set".
  ArraySource(std::string where, std::string named) : where_(std::move(where)), named_(std::move(named)) {}

  void add(SourceArray array, std::unique_ptr<RowReader> rows);
  void add_other(std::string what) { others_.push_back(std::move(what)); }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }

  const std::string& where() const { return where_; }
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> arrays) const override;
  std::string place(std::size_t array, std::int64_t row) const override;
  std::vector<std::string> others() const override { return others_; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  std::string where_, named_;
  std::vector<SourceArray> arrays_;
  std::vector<std::unique_ptr<RowReader>> readers_;
  std::vector<std::string> others_, notes_;
};

// Arrays that are in memory. `where` names them in errors.
std::unique_ptr<SampleSource> source_of(const std::map<std::string, Tensor>& arrays, std::string where);

// An array of this shape, named `name`.
SourceArray array_of(std::string name, ElementType type, const Shape& shape);

}  // namespace superstep::data
