#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "superstep/base/text.h"
#include "superstep/data/hdf5.h"
#include "superstep/data/hdf5_attributes.h"

namespace superstep::data {

using hdf5::Entry;
using hdf5::Handle;

struct Hdf5File::State {
  std::filesystem::path path;
  Handle file;
};

namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& where, std::string message,
                         std::string hint = {}) {
  throw Error(code, std::move(message), where, std::move(hint));
}

void require_readable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    refuse(ErrorCode::not_found, path.string(), "there is no such file");
  if (std::filesystem::is_directory(path, ignored))
    refuse(ErrorCode::bad_file, path.string(), "this is a folder, not an HDF5 file");
  if (!std::ifstream(path))
    refuse(ErrorCode::io, path.string(), "cannot open the file", "check the permissions");
}

Handle open_file(const std::filesystem::path& path) {
  require_readable(path);
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 == 0) refuse(ErrorCode::bad_file, path.string(), "this is not an HDF5 file");
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (file.valid()) return file;
  const std::string reason = hdf5::last_error_text();
  if (reason.find("truncated") != std::string::npos)
    refuse(ErrorCode::bad_file, path.string(), fmt::format("the file is cut short ({})", reason),
           "copy or generate it again");
  refuse(ErrorCode::bad_file, path.string(), fmt::format("cannot open the HDF5 file: {}", reason));
}

// Every data set below the root, by H5Ovisit.
struct Visit {
  std::vector<std::string> names;
};

herr_t keep_data_set(hid_t, const char* name, const H5O_info_t* info, void* out) {
  if (info->type == H5O_TYPE_DATASET) static_cast<Visit*>(out)->names.emplace_back(name);
  return 0;
}

std::vector<std::string> data_set_names(const Handle& file, const std::filesystem::path& path) {
  Visit visit;
  if (H5Ovisit2(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, keep_data_set, &visit, H5O_INFO_BASIC) < 0)
    refuse(ErrorCode::bad_file, path.string(),
           fmt::format("cannot list the data sets: {}", hdf5::last_error_text()));
  std::ranges::sort(visit.names);
  return visit.names;
}

std::vector<std::int64_t> extents_of(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank > 0) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

std::string shape_text(std::span<const std::int64_t> wanted) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < wanted.size(); ++axis)
    text += (axis ? "," : "") + (wanted[axis] < 0 ? std::string("any") : std::to_string(wanted[axis]));
  return text + "]";
}

bool shape_fits(const Shape& shape, std::span<const std::int64_t> wanted) {
  return std::ranges::equal(shape, wanted,
                            [](std::int64_t is, std::int64_t want) { return want < 0 || is == want; });
}

// An open data set and what is known of it.
struct OpenDataSet {
  Handle set, type, space;
  DataSetInfo info;
  bool string = false;
};

DataSetInfo describe(std::string_view name, const hdf5::Kind& kind, std::vector<std::int64_t> extents) {
  if (kind.complex) extents.push_back(2);
  DataSetInfo info{std::string(name), Shape(std::move(extents)), {}, kind.name, kind.complex};
  if (kind.numeric) info.type = kind.type;
  return info;
}

// Why a data set could not be opened: it is not there, or it is damaged.
[[noreturn]] void refuse_open(const Handle& file, const std::filesystem::path& path, std::string_view name) {
  const std::string reason = hdf5::last_error_text(), where = place(path, name);
  const std::vector<std::string> known = data_set_names(file, path);
  if (std::ranges::binary_search(known, std::string(name)))
    refuse(ErrorCode::bad_file, where, fmt::format("cannot open it: {}", reason));
  refuse(ErrorCode::not_found, where, "the file has no data set of this name",
         unknown_name_hint(name, known));
}

OpenDataSet open_data_set(const Handle& file, const std::filesystem::path& path, std::string_view name) {
  const std::string where = place(path, name);
  OpenDataSet open;
  open.set = Handle(H5Dopen2(file.get(), std::string(name).c_str(), H5P_DEFAULT), H5Dclose);
  if (!open.set.valid()) refuse_open(file, path, name);
  if (open.set.valid()) open.type = Handle(H5Dget_type(open.set.get()), H5Tclose);
  if (open.type.valid()) open.space = Handle(H5Dget_space(open.set.get()), H5Sclose);
  if (!open.space.valid())
    refuse(ErrorCode::bad_file, where, fmt::format("cannot open it: {}", hdf5::last_error_text()));
  const hdf5::Kind kind = hdf5::kind_of(open.type.get());
  open.string = kind.string;
  try {
    open.info = describe(name, kind, extents_of(open.space.get()));
  } catch (const Error& error) {
    throw error.in(where);
  }
  return open;
}

void require_numeric(const OpenDataSet& open, const std::string& where) {
  if (!open.info.type)
    refuse(ErrorCode::bad_file, where,
           fmt::format("its elements are of type {}, not numbers", open.info.type_name));
}

// The pair (r, i) that h5py stores complex numbers as, of elements in memory.
Handle complex_of(const Handle& element) {
  const std::size_t size = H5Tget_size(element.get());
  Handle pair(H5Tcreate(H5T_COMPOUND, 2 * size), H5Tclose);
  H5Tinsert(pair.get(), "r", 0, element.get());
  H5Tinsert(pair.get(), "i", size, element.get());
  return pair;
}

// The library converts among numbers, but not between numbers and h5py's booleans: those convert after.
ElementType type_to_read(const OpenDataSet& open, ElementType wanted) {
  const bool mixed = (*open.info.type == ElementType::boolean) != (wanted == ElementType::boolean);
  return mixed ? *open.info.type : wanted;
}

std::string read_failure(const Handle& set) {
  std::string reason = hdf5::last_error_text();
  const Handle creation(H5Dget_create_plist(set.get()), H5Pclose);
  for (int i = 0; creation.valid() && i < H5Pget_nfilters(creation.get()); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    char name[128] = "";
    const H5Z_filter_t filter = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags, &values,
                                               nullptr, sizeof name, name, &config);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0)
      return fmt::format("it is compressed with filter {} ({}), which is not installed", int{filter},
                         name[0] ? name : "no name");
  }
  return fmt::format("cannot read it: {}", reason);
}

[[noreturn]] void refuse_read(const Handle& set, const std::string& where) {
  const std::string reason = read_failure(set);
  const bool filter = reason.find("not installed") != std::string::npos;
  refuse(filter ? ErrorCode::unsupported : ErrorCode::bad_file, where, reason,
         filter ? "install the filter's plugin and set HDF5_PLUGIN_PATH to its folder" : "");
}

Tensor make_tensor(ElementType type, Shape shape, const std::string& where) {
  try {
    return Tensor(type, std::move(shape));
  } catch (const Error& error) {
    throw error.in(where);
  }
}

// The block of a data set; `first` and `count` have the rank of the file's data space.
Tensor read_selected(const OpenDataSet& open, ElementType wanted, std::span<const std::int64_t> first,
                     std::span<const std::int64_t> count, const std::string& where) {
  std::vector<std::int64_t> extents(count.begin(), count.end());
  if (open.info.complex) extents.push_back(2);
  const ElementType type = type_to_read(open, wanted);
  Tensor tensor = make_tensor(type, Shape(extents), where);
  if (tensor.element_count() == 0) return make_tensor(wanted, Shape(extents), where);
  const std::vector<hsize_t> start(first.begin(), first.end()), size(count.begin(), count.end());
  Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
  if (size.empty()) memory = Handle(H5Screate(H5S_SCALAR), H5Sclose);
  if (!size.empty())
    H5Sselect_hyperslab(open.space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr);
  Handle element = hdf5::type_of(type);
  if (open.info.complex) element = complex_of(element);
  if (H5Dread(open.set.get(), element.get(), memory.get(), open.space.get(), H5P_DEFAULT, tensor.bytes()) < 0)
    refuse_read(open.set, where);
  return type == wanted ? tensor : tensor.converted(wanted);
}

void require_inside(const OpenDataSet& open, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count, const std::string& where) {
  const std::vector<std::int64_t> extents = extents_of(open.space.get());
  bool inside = first.size() == extents.size() && count.size() == extents.size();
  for (std::size_t axis = 0; inside && axis < extents.size(); ++axis)
    inside = first[axis] >= 0 && count[axis] >= 0 && first[axis] <= extents[axis] &&
             count[axis] <= extents[axis] - first[axis];
  if (!inside)
    refuse(ErrorCode::invalid_argument, where,
           fmt::format("the block of [{}] elements at [{}] is outside its shape {}", fmt::join(count, ","),
                       fmt::join(first, ","), to_string(open.info.shape)));
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : state_(std::make_unique<State>()) {
  const Entry entry;
  state_->path = path;
  state_->file = open_file(path);
}

Hdf5File::~Hdf5File() {
  const Entry entry;
  state_.reset();
}

Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;

const std::filesystem::path& Hdf5File::path() const { return state_->path; }

std::vector<DataSetInfo> Hdf5File::data_sets() const {
  const Entry entry;
  std::vector<DataSetInfo> infos;
  for (const std::string& name : data_set_names(state_->file, state_->path))
    infos.push_back(open_data_set(state_->file, state_->path, name).info);
  return infos;
}

bool Hdf5File::contains(std::string_view name) const {
  const Entry entry;
  return std::ranges::binary_search(data_set_names(state_->file, state_->path), std::string(name));
}

DataSetInfo Hdf5File::info(std::string_view name) const {
  const Entry entry;
  return open_data_set(state_->file, state_->path, name).info;
}

Tensor Hdf5File::read(std::string_view name, ElementType type) const {
  const Entry entry;
  const OpenDataSet open = open_data_set(state_->file, state_->path, name);
  const std::string where = place(state_->path, name);
  require_numeric(open, where);
  const std::vector<std::int64_t> count = extents_of(open.space.get());
  return read_selected(open, type, std::vector<std::int64_t>(count.size()), count, where);
}

Tensor Hdf5File::read_rows(std::string_view name, ElementType type, std::int64_t first,
                           std::int64_t count) const {
  const Entry entry;
  const OpenDataSet open = open_data_set(state_->file, state_->path, name);
  const std::string where = place(state_->path, name);
  require_numeric(open, where);
  std::vector<std::int64_t> counts = extents_of(open.space.get());
  if (counts.empty()) refuse(ErrorCode::bad_file, where, "it is a single value and has no rows");
  std::vector<std::int64_t> firsts(counts.size());
  counts[0] = count;
  firsts[0] = first;
  require_inside(open, firsts, counts, where);
  return read_selected(open, type, firsts, counts, where);
}

Tensor Hdf5File::read_block(std::string_view name, ElementType type, std::span<const std::int64_t> first,
                            std::span<const std::int64_t> count) const {
  const Entry entry;
  const OpenDataSet open = open_data_set(state_->file, state_->path, name);
  const std::string where = place(state_->path, name);
  require_numeric(open, where);
  require_inside(open, first, count, where);
  return read_selected(open, type, first, count, where);
}

DataSetInfo Hdf5File::require_shape(std::string_view name, std::span<const std::int64_t> shape) const {
  DataSetInfo found = info(name);
  const std::string where = place(state_->path, name);
  if (!found.type)
    refuse(ErrorCode::bad_file, where,
           fmt::format("its elements are of type {}, not numbers", found.type_name));
  if (!shape_fits(found.shape, shape))
    refuse(ErrorCode::bad_file, where,
           fmt::format("its shape is {}, not {}", to_string(found.shape), shape_text(shape)));
  return found;
}

Tensor Hdf5File::read(std::string_view name, ElementType type, std::span<const std::int64_t> shape) const {
  require_shape(name, shape);
  return read(name, type);
}

std::vector<std::string> Hdf5File::read_strings(std::string_view name) const {
  const Entry entry;
  const OpenDataSet open = open_data_set(state_->file, state_->path, name);
  const std::string where = place(state_->path, name);
  if (!open.string)
    refuse(ErrorCode::bad_file, where,
           fmt::format("its elements are of type {}, not strings", open.info.type_name));
  const auto count = static_cast<std::size_t>(open.info.shape.element_count());
  std::vector<std::string> values(count);
  if (count == 0) return values;
  if (H5Tis_variable_str(open.type.get()) > 0) {
    std::vector<char*> pointers(count, nullptr);
    if (H5Dread(open.set.get(), open.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0)
      refuse_read(open.set, where);
    for (std::size_t i = 0; i < count; ++i) values[i] = pointers[i] ? pointers[i] : "";
    H5Dvlen_reclaim(open.type.get(), open.space.get(), H5P_DEFAULT, pointers.data());
    return values;
  }
  const std::size_t width = H5Tget_size(open.type.get());
  std::vector<char> text(count * width);
  if (H5Dread(open.set.get(), open.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0)
    refuse_read(open.set, where);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::string(&text[i * width], strnlen(&text[i * width], width));
  return values;
}

std::map<std::string, Attribute> Hdf5File::attributes(std::string_view object) const {
  const Entry entry;
  const std::string name = object.empty() ? "/" : std::string(object);
  const Handle open(H5Oopen(state_->file.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!open.valid())
    refuse(ErrorCode::not_found, place(state_->path, object), "the file has no object of this name");
  return hdf5::read_attributes(open.get());
}

}  // namespace superstep::data
