// Inside of the HDF5 layer: reading by the HDF5 library itself, in the process that calls. The library
// crashes or hangs on some damaged files, so this runs in a child process (hdf5_served.h) and nowhere else.
#pragma once

#include "superstep/base/system/guarded_child.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_handle.h"
#include "superstep/file/hdf5/hdf5_place.h"
#include "superstep/file/hdf5/pytables.h"

namespace superstep::data::hdf5 {

// What any request may use beside what is known of it: processor time, more of it for a larger file, and
// memory.
constexpr double seconds_a_request = 3;
constexpr double described_bytes_a_second = 1e6;
constexpr std::uint64_t memory_of_the_reader = 256 << 20;
// The slowest filters of compressed files unpack faster than this.
constexpr double bytes_a_second = 5e6;

// Throws Error (out_of_memory) when `bytes` are more than what is free, the child's own limit not counted.
void require_free_memory(double bytes, const std::string& where);

// A tensor in memory that another process can take over.
struct SharedTensor {
  SharedBlock block;
  Tensor tensor;
};
SharedTensor shared_tensor(ElementType type, const Shape& shape);

// The functions of Hdf5File and PandasFile, by their names.
class DirectFile {
 public:
  explicit DirectFile(const std::filesystem::path& path);

  std::vector<DataSetInfo> data_sets() const;
  bool contains(std::string_view name) const;
  DataSetInfo info(std::string_view name) const;
  SharedTensor read(std::string_view name, ElementType type) const;
  SharedTensor read_rows(std::string_view name, ElementType type, std::int64_t first,
                         std::int64_t count) const;
  SharedTensor read_block(std::string_view name, ElementType type, std::span<const std::int64_t> first,
                          std::span<const std::int64_t> count) const;
  std::optional<DataSetPlace> place_of(std::string_view name) const;
  std::vector<std::string> read_strings(std::string_view name) const;
  std::map<std::string, Attribute> attributes(std::string_view object) const;

  const std::filesystem::path& path() const { return path_; }
  const Handle& file() const { return file_; }

 private:
  std::filesystem::path path_;
  Handle file_;
};

// Data frames of pandas in a file: its numbers are in `values`, not in `frame`.
struct SharedFrame {
  PandasFrame frame;
  SharedTensor values;
};
std::vector<std::string> frame_keys(const DirectFile& file);
std::int64_t frame_rows(const DirectFile& file, const std::string& key);
SharedFrame read_frame(const DirectFile& file, const std::string& key, std::int64_t first,
                       std::int64_t count);

}  // namespace superstep::data::hdf5
