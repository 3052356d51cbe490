// Arrays by name out of whatever a user names: an HDF5 file as it is, other forms through their sources.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "superstep/base/tensor.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// What consumers that hold whole arrays ask of files. Errors and conversions are those of Hdf5File.
class ArrayFile {
 public:
  // `path`: a file, or what else named_paths() takes.
  explicit ArrayFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  bool contains(std::string_view name) const;
  DataSetInfo info(std::string_view name) const;
  Tensor read(std::string_view name, ElementType type) const;
  Tensor read(std::string_view name, ElementType type, std::span<const std::int64_t> shape) const;
  Tensor read_rows(std::string_view name, ElementType type, std::int64_t first, std::int64_t count) const;
  DataSetInfo require_shape(std::string_view name, std::span<const std::int64_t> shape) const;
  // None of a form that has none.
  std::map<std::string, Attribute> attributes(std::string_view object = "") const;

 private:
  std::filesystem::path path_;
  std::optional<Hdf5File> hdf5_;
  std::unique_ptr<SampleSource> source_;  // of other forms
};

}  // namespace superstep::data
