#include "superstep/file/source/array_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/file/form.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/sample_rows.h"

namespace superstep::data {

ArrayFile::ArrayFile(const std::filesystem::path& path) : path_(path) {
  std::error_code none;
  // What is no file by this very name may still be a pattern; what is of no form the library refuses with a
  // reason.
  const bool one = std::filesystem::is_regular_file(path, none);
  if (one && (form_of(path) == FileForm::hdf5 || !form_for(path)))
    hdf5_.emplace(path);
  else
    source_ = open_source(path);
}

bool ArrayFile::contains(std::string_view name) const {
  return hdf5_ ? hdf5_->contains(name) : find_array(*source_, name) < source_->arrays().size();
}

DataSetInfo ArrayFile::info(std::string_view name) const {
  if (hdf5_) return hdf5_->info(name);
  const SourceArray& array = source_->arrays()[require_array(*source_, name, path_.string())];
  return {.name = array.name,
          .shape = array.shape(),
          .type = array.type,
          .type_name = std::string(name_of(array.type))};
}

DataSetInfo ArrayFile::require_shape(std::string_view name, std::span<const std::int64_t> shape) const {
  if (hdf5_) return hdf5_->require_shape(name, shape);
  DataSetInfo found = info(name);
  if (std::ranges::equal(found.shape.extents(), shape,
                         [](std::int64_t is, std::int64_t want) { return want < 0 || is == want; }))
    return found;
  std::vector<std::string> extents;
  for (const std::int64_t extent : shape) extents.push_back(extent < 0 ? "any" : std::to_string(extent));
  throw Error(ErrorCode::bad_file,
              fmt::format("its shape is {}, not [{}]", to_string(found.shape), fmt::join(extents, ",")),
              source_->place(find_array(*source_, name), 0));
}

Tensor ArrayFile::read_rows(std::string_view name, ElementType type, std::int64_t first,
                            std::int64_t count) const {
  if (hdf5_) return hdf5_->read_rows(name, type, first, count);
  const std::size_t at = require_array(*source_, name, path_.string());
  const SourceArray& array = source_->arrays()[at];
  if (array.single || first < 0 || count < 0 || first > array.rows - count)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rows {} to {} are not within its shape {}", first, first + count - 1,
                            to_string(array.shape())),
                source_->place(at, 0));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return exactly_converted(data::read_rows(*source_, at, rows), type, source_->place(at, first), rows);
}

Tensor ArrayFile::read(std::string_view name, ElementType type) const {
  if (hdf5_) return hdf5_->read(name, type);
  const std::size_t at = require_array(*source_, name, path_.string());
  const Tensor all = read_whole(*source_, at);
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(all.shape().rank() > 0 ? all.shape()[0] : std::int64_t{1}));
  std::iota(rows.begin(), rows.end(), 0);
  return exactly_converted(all, type, source_->place(at, 0), rows);
}

Tensor ArrayFile::read(std::string_view name, ElementType type, std::span<const std::int64_t> shape) const {
  require_shape(name, shape);
  return read(name, type);
}

std::map<std::string, Attribute> ArrayFile::attributes(std::string_view object) const {
  return hdf5_ ? hdf5_->attributes(object) : std::map<std::string, Attribute>();
}

}  // namespace superstep::data
