// HDF5 files in and out: the numeric part of what h5py reads and writes.
//
// Reading converts from whatever numeric type the file has to the element type that is asked for:
// floating-point numbers are rounded; integers are kept, and what an integer type cannot hold as it is (out
// of range, a fraction, NaN) is refused. Compressed data sets are read through the filters of the library and
// through plugins found by HDF5_PLUGIN_PATH. Every failure is an Error that names the file and the data set.
//
// Objects are named by their path from the root of the file, without a slash in front: "patch",
// "entry/data". All functions may be called from any thread; the library lets one thread in at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

using Attribute = std::variant<std::int64_t, double, std::string>;

// How errors name a data set: "FILE: data set 'NAME'".
std::string place(const std::filesystem::path& path, std::string_view name);

// What a file says about one of its data sets.
struct DataSetInfo {
  std::string name;
  Shape shape;                      // a complex data set has one more, innermost axis: real, imaginary
  std::optional<ElementType> type;  // none: not a numeric data set
  std::string type_name;            // "f32", "complex f32", "string", "compound", ...
  bool complex = false;
};

struct DataSetPlace;  // hdf5_place.h

class Hdf5File {
 public:
  // Opens for reading. Throws Error: not_found (no such file), bad_file (not HDF5, truncated), io.
  explicit Hdf5File(const std::filesystem::path& path);
  ~Hdf5File();
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;

  const std::filesystem::path& path() const;
  std::vector<DataSetInfo> data_sets() const;  // all of them, groups descended into, sorted by name
  bool contains(std::string_view name) const;  // is there a data set of this name?
  // Throws Error (not_found) with the nearest name or the list of what there is.
  DataSetInfo info(std::string_view name) const;

  // A numeric data set, or rows [first, first + count) of its outermost axis, or a block of it: `first`
  // and `count` have an entry for each axis. Throws Error: not_found, bad_file (damaged, wrong kind),
  // invalid_argument (outside the data set), out_of_memory.
  Tensor read(std::string_view name, ElementType type) const;
  Tensor read_rows(std::string_view name, ElementType type, std::int64_t first, std::int64_t count) const;
  Tensor read_block(std::string_view name, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const;

  // As read(), and throws Error (bad_file) unless the shape is `shape`, where -1 stands for any extent.
  Tensor read(std::string_view name, ElementType type, std::span<const std::int64_t> shape) const;
  // Throws that Error without reading.
  DataSetInfo require_shape(std::string_view name, std::span<const std::int64_t> shape) const;

  // Where a numeric data set lies, to be read without the library; nothing where that cannot be.
  std::optional<DataSetPlace> place_of(std::string_view name) const;

  // A data set of strings, of fixed or variable length and any rank, flattened.
  std::vector<std::string> read_strings(std::string_view name) const;

  // Scalar attributes of a data set or a group (numbers and strings); "" is the file itself. Attributes
  // of other kinds are left out.
  std::map<std::string, Attribute> attributes(std::string_view object = "") const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How a data set lies in the file.
struct Layout {
  bool extendable = false;      // the outermost axis grows as rows are written
  std::int64_t chunk_rows = 0;  // rows of the outermost axis a chunk; 0: contiguous, or chosen by the writer
  int deflate = 0;              // 1 (fast) to 9 (small), with shuffling; 0: not compressed
  bool at_once = false;         // contiguous, with room for all rows when it is made: place_of()
};

// Writes a file under a temporary name beside `path`; close() makes it appear, whole, under its own. A
// writer that is destroyed before that (an error, an interrupt) leaves nothing behind, and what was at
// `path` stays. Errors are io; a full disk says so.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::filesystem::path& path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // A data set of the full shape, to be filled by write_rows. Groups in the name are made.
  void create(std::string_view name, ElementType type, const Shape& shape, const Layout& layout = {});
  // Rows [first, first + rows.shape()[0]) of the outermost axis; the element types must agree.
  void write_rows(std::string_view name, std::int64_t first, const Tensor& rows);
  // The same from memory: `count` rows of the type given to create().
  void write_rows(std::string_view name, std::int64_t first, std::int64_t count,
                  std::span<const std::byte> bytes);
  void write(std::string_view name, const Tensor& tensor, const Layout& layout = {});  // create and fill
  void write_strings(std::string_view name, std::span<const std::string> values);      // rank 1, UTF-8

  // Where the elements of a data set that has its room at_once begin in the file, which others may write to
  // once it is closed; nothing where it has none.
  std::optional<std::uint64_t> place_of(std::string_view name) const;

  // An attribute of a data set or group that exists; "" is the file itself.
  void set_attribute(std::string_view object, std::string_view name, const Attribute& value);

  void close();  // flushes to the disk and renames

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace superstep::data
