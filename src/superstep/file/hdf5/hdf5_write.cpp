#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "superstep/base/system/partial_files.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_attributes.h"

namespace superstep::data {

using hdf5::Entry;
using hdf5::Handle;

namespace {

struct Column {
  Handle set;
  ElementType type;
  Shape shape;
  bool extendable = false;
  std::size_t row_bytes() const {
    std::size_t bytes = size_in_bytes(type);
    for (int axis = 1; axis < shape.rank(); ++axis) bytes *= static_cast<std::size_t>(shape[axis]);
    return bytes;
  }
};

// The file beside the target that is written to, removed unless it was renamed.
class PartialFile {
 public:
  explicit PartialFile(const std::filesystem::path& path) : target_(path) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(path, ignored)) target_ = std::filesystem::canonical(path, ignored);
    temporary_ = partial_name(target_);
  }
  ~PartialFile() {
    if (!renamed_) ::unlink(temporary_.c_str());
  }
  const std::string& name() const { return temporary_; }
  bool flush_and_rename() {
    const int fd = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool flushed = fd >= 0 && ::fsync(fd) == 0;
    if (fd >= 0) ::close(fd);
    renamed_ = flushed && ::rename(temporary_.c_str(), target_.c_str()) == 0;
    return renamed_;
  }

 private:
  std::filesystem::path target_;
  std::string temporary_;
  bool renamed_ = false;
};

constexpr std::int64_t chunk_bytes = 1 << 18;

std::int64_t rows_a_chunk(const Column& column, const Layout& layout) {
  if (layout.chunk_rows > 0) return layout.chunk_rows;
  const auto row = static_cast<std::int64_t>(std::max<std::size_t>(column.row_bytes(), 1));
  return std::max<std::int64_t>(chunk_bytes / row, 1);
}

// Without the time of writing, so that equal content gives equal files.
Handle timeless_properties() {
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  return properties;
}

Handle creation_properties(const Column& column, const Layout& layout) {
  Handle properties = timeless_properties();
  H5Pset_fill_time(properties.get(), H5D_FILL_TIME_IFSET);
  if (layout.at_once) H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
  const bool chunked = layout.extendable || layout.chunk_rows > 0 || layout.deflate > 0;
  if (!chunked || column.shape.rank() == 0) return properties;
  std::vector<hsize_t> chunk(column.shape.begin(), column.shape.end());
  chunk[0] = static_cast<hsize_t>(rows_a_chunk(column, layout));
  if (!layout.extendable) chunk[0] = std::min(chunk[0], static_cast<hsize_t>(column.shape[0]));
  for (hsize_t& extent : chunk) extent = std::max<hsize_t>(extent, 1);
  H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  if (layout.deflate > 0) H5Pset_shuffle(properties.get());
  if (layout.deflate > 0) H5Pset_deflate(properties.get(), static_cast<unsigned>(layout.deflate));
  return properties;
}

Handle data_space(const Shape& shape, bool extendable) {
  if (shape.rank() == 0) return Handle(H5Screate(H5S_SCALAR), H5Sclose);
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  std::vector<hsize_t> limits = extents;
  if (extendable) limits[0] = H5S_UNLIMITED;
  return Handle(H5Screate_simple(shape.rank(), extents.data(), limits.data()), H5Sclose);
}

}  // namespace

struct Hdf5Writer::State {
  explicit State(const std::filesystem::path& target) : path(target), partial(target) {}
  // What is still open is not wanted: emptying the file gives a full disk the room that closing needs.
  ~State() {
    if (file.valid() && ::truncate(partial.name().c_str(), 0) != 0) errno = 0;
  }

  std::filesystem::path path;
  PartialFile partial;
  Handle file;
  std::map<std::string, Column, std::less<>> columns;  // destroyed, and so closed, before the file

  Handle create(std::string_view name, hid_t type, const Shape& shape, bool extendable, hid_t properties) {
    const Handle space = data_space(shape, extendable), links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links.get(), 1);
    Handle set(H5Dcreate2(file.get(), std::string(name).c_str(), type, space.get(), links.get(), properties,
                          H5P_DEFAULT),
               H5Dclose);
    if (!set.valid()) throw hdf5::io_error(path, name, "make it");
    return set;
  }
  Column& column(std::string_view name) {
    const auto found = columns.find(name);
    if (found == columns.end())
      throw Error(ErrorCode::internal, "rows were written to it before it was made", place(path, name));
    return found->second;
  }
};

Hdf5Writer::Hdf5Writer(const std::filesystem::path& path) {
  const Entry entry;
  state_ = std::make_unique<State>(path);
  errno = 0;
  state_->file =
      Handle(H5Fcreate(state_->partial.name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  if (!state_->file.valid()) throw hdf5::io_error(path, "", "write");
}

Hdf5Writer::~Hdf5Writer() {
  const Entry entry;
  state_.reset();
}

void Hdf5Writer::create(std::string_view name, ElementType type, const Shape& shape, const Layout& layout) {
  const Entry entry;
  Column column{Handle(), type, shape, layout.extendable};
  const Handle properties = creation_properties(column, layout);
  column.set = state_->create(name, hdf5::type_of(type).get(), shape, layout.extendable, properties.get());
  state_->columns.insert_or_assign(std::string(name), std::move(column));
}

std::optional<std::uint64_t> Hdf5Writer::place_of(std::string_view name) const {
  const Entry entry;
  const haddr_t place = H5Dget_offset(state_->column(name).set.get());
  return place == HADDR_UNDEF ? std::nullopt : std::optional<std::uint64_t>(place);
}

void Hdf5Writer::write_rows(std::string_view name, std::int64_t first, std::int64_t count,
                            std::span<const std::byte> bytes) {
  const Entry entry;
  Column& column = state_->column(name);
  const std::string where = place(state_->path, name);
  if (bytes.size() != static_cast<std::size_t>(count) * column.row_bytes())
    throw Error(ErrorCode::internal, "the memory is not that of the rows to be written", where);
  if (count == 0) return;
  std::vector<hsize_t> extents(column.shape.begin(), column.shape.end());
  if (column.extendable && first + count > column.shape[0]) {
    extents[0] = static_cast<hsize_t>(first + count);
    if (H5Dset_extent(column.set.get(), extents.data()) < 0)
      throw hdf5::io_error(state_->path, name, "extend it");
    column.shape = Shape({extents.begin(), extents.end()});
  }
  const Handle space(H5Dget_space(column.set.get()), H5Sclose), type = hdf5::type_of(column.type);
  std::vector<hsize_t> start(extents.size(), 0);
  start[0] = static_cast<hsize_t>(first);
  extents[0] = static_cast<hsize_t>(count);
  const Handle memory(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
  const herr_t selected =
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr);
  if (selected < 0 || first < 0 || first + count > column.shape[0])
    throw Error(ErrorCode::internal, "rows were written outside it", where);
  if (H5Dwrite(column.set.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, bytes.data()) < 0)
    throw hdf5::io_error(state_->path, name, "write it");
}

void Hdf5Writer::write_rows(std::string_view name, std::int64_t first, const Tensor& rows) {
  write_rows(name, first, rows.shape()[0], {rows.bytes(), rows.byte_count()});
}

void Hdf5Writer::write(std::string_view name, const Tensor& tensor, const Layout& layout) {
  create(name, tensor.type(), tensor.shape(), layout);
  if (tensor.shape().rank() > 0) return write_rows(name, 0, tensor);
  const Entry entry;
  const Handle type = hdf5::type_of(tensor.type());
  if (H5Dwrite(state_->column(name).set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes()) < 0)
    throw hdf5::io_error(state_->path, name, "write it");
}

void Hdf5Writer::write_strings(std::string_view name, std::span<const std::string> values) {
  const Entry entry;
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Handle properties = timeless_properties();
  const Handle set = state_->create(name, type.get(), Shape{static_cast<std::int64_t>(values.size())}, false,
                                    properties.get());
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  if (!values.empty() && H5Dwrite(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0)
    throw hdf5::io_error(state_->path, name, "write it");
}

void Hdf5Writer::set_attribute(std::string_view object, std::string_view name, const Attribute& value) {
  const Entry entry;
  const std::string key = object.empty() ? "/" : std::string(object);
  const Handle open(H5Oopen(state_->file.get(), key.c_str(), H5P_DEFAULT), H5Oclose);
  if (!open.valid() || !hdf5::write_attribute(open.get(), std::string(name), value))
    throw hdf5::io_error(state_->path, object, fmt::format("write its attribute '{}'", name));
}

void Hdf5Writer::close() {
  const Entry entry;
  for (auto& [name, column] : state_->columns)
    if (!column.set.close()) throw hdf5::io_error(state_->path, name, "write it");
  if (H5Fflush(state_->file.get(), H5F_SCOPE_GLOBAL) < 0 || !state_->file.close())
    throw hdf5::io_error(state_->path, "", "write");
  if (!state_->partial.flush_and_rename())
    throw Error(ErrorCode::io, fmt::format("cannot write: {}", std::strerror(errno)), state_->path.string());
  state_->columns.clear();
}

}  // namespace superstep::data
