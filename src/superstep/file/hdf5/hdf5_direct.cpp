#include "superstep/file/hdf5/hdf5_direct.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/process_limits.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/base/text.h"
#include "superstep/file/check.h"
#include "superstep/file/hdf5/hdf5_attributes.h"
#include "superstep/file/hdf5/hdf5_filters.h"
#include "superstep/file/hdf5/hdf5_links.h"

namespace superstep::data::hdf5 {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& where, std::string message,
                         std::string hint = {}) {
  throw Error(code, std::move(message), where, std::move(hint));
}

void require_readable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    refuse(ErrorCode::bad_file, path.string(), "this is a folder, not an HDF5 file");
  require_regular_file(path);
}

Handle open_file(const std::filesystem::path& path) {
  require_readable(path);
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 == 0) refuse(ErrorCode::bad_file, path.string(), "this is not an HDF5 file");
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (file.valid()) return file;
  const std::string reason = last_error_text();
  if (reason.find("truncated") != std::string::npos)
    refuse(ErrorCode::bad_file, path.string(), fmt::format("the file is cut short ({})", reason),
           "copy or generate it again");
  refuse(ErrorCode::bad_file, path.string(), fmt::format("cannot open the HDF5 file: {}", reason));
}

std::vector<std::int64_t> extents_of(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank > 0) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

// An open data set and what is known of it.
struct OpenDataSet {
  Handle set, type, space;
  DataSetInfo info;
  bool string = false;
};

DataSetInfo describe(std::string_view name, const Kind& kind, std::vector<std::int64_t> extents) {
  if (kind.complex) extents.push_back(2);
  DataSetInfo info{std::string(name), Shape(std::move(extents)), {}, kind.name, kind.complex};
  if (kind.numeric) info.type = kind.type;
  return info;
}

// Why a data set could not be opened: it is not there, or it is damaged.
[[noreturn]] void refuse_open(const Links& links, const std::filesystem::path& path, std::string_view name) {
  const std::string reason = last_error_text(), where = place(path, name);
  if (const std::string why = links.why_broken(name); !why.empty())
    refuse(ErrorCode::not_found, where, fmt::format("it is a {}", why));
  const std::vector<std::string> known = links.names().data_sets;
  if (std::ranges::binary_search(known, std::string(name)))
    refuse(ErrorCode::bad_file, where, fmt::format("cannot open it: {}", reason));
  refuse(ErrorCode::not_found, where, "the file has no data set of this name",
         unknown_name_hint(name, known));
}

OpenDataSet open_data_set(const Handle& file, const std::filesystem::path& path, std::string_view name) {
  const std::string where = place(path, name);
  const Links links(file, path);
  OpenDataSet open;
  open.set = links.data_set(name);
  if (!open.set.valid()) refuse_open(links, path, name);
  open.type = Handle(H5Dget_type(open.set.get()), H5Tclose);
  if (open.type.valid()) open.space = Handle(H5Dget_space(open.set.get()), H5Sclose);
  if (!open.space.valid())
    refuse(ErrorCode::bad_file, where, fmt::format("cannot open it: {}", last_error_text()));
  const Kind kind = kind_of(open.type.get());
  open.string = kind.string;
  try {
    open.info = describe(name, kind, extents_of(open.space.get()));
  } catch (const Error& error) {
    throw error.in(where);
  }
  return open;
}

// One that may not be read, or lacks a part, hides no other one: it has no type, and its name of one says
// why.
DataSetInfo info_or_why(const Handle& file, const std::filesystem::path& path, const std::string& name) {
  try {
    return open_data_set(file, path, name).info;
  } catch (const OutOfReach& error) {
    return {name, Shape{}, {}, error.message(), false};
  }
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

// The library converts among numbers, but not between numbers and h5py's booleans: those convert after. So do
// integers that may not hold what is stored: the library would clip them, and cut fractions off.
ElementType type_to_read(const OpenDataSet& open, ElementType wanted) {
  const bool mixed = (*open.info.type == ElementType::boolean) != (wanted == ElementType::boolean);
  return mixed || is_narrower_integer(wanted, *open.info.type) ? *open.info.type : wanted;
}

std::string read_failure(const Handle& set) {
  std::string reason = last_error_text();
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

// Bytes of the chunks that hold a block of a data set, and the most that one chunk takes; of a data set
// without chunks those of the block.
struct Stored {
  double bytes = 0, chunk = 0;
};

Stored stored_bytes(const OpenDataSet& open, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) {
  const Handle creation(H5Dget_create_plist(open.set.get()), H5Pclose);
  std::vector<hsize_t> chunk(count.size(), 1);
  const auto rank = static_cast<int>(count.size());
  const bool chunked = rank > 0 && H5Pget_layout(creation.get()) == H5D_CHUNKED &&
                       H5Pget_chunk(creation.get(), rank, chunk.data()) == rank;
  double chunks = 1, elements = 1;
  for (std::size_t axis = 0; axis < count.size(); ++axis) {
    const auto extent = static_cast<double>(std::max<hsize_t>(chunk[axis], 1));
    const double from = std::floor(static_cast<double>(first[axis]) / extent);
    chunks *= std::ceil(static_cast<double>(first[axis] + count[axis]) / extent) - from;
    elements *= extent;
  }
  const double chunk_bytes = elements * static_cast<double>(H5Tget_size(open.type.get()));
  return {chunks * chunk_bytes, chunked ? chunk_bytes : 0};
}

// Room for reading a block into `result` bytes: the result, and a chunk as it is stored, unpacked and between
// two filters. What the file declares is held against the memory there is before anything is allocated.
Allowance allow_reading(const OpenDataSet& open, std::span<const std::int64_t> first,
                        std::span<const std::int64_t> count, double result, const std::string& where) {
  const Stored stored = stored_bytes(open, first, count);
  require_free_memory(result + 3 * stored.chunk, where);
  extend_processor_time(seconds_a_request + (stored.bytes + result) / bytes_a_second);
  return Allowance(static_cast<std::uint64_t>(3 * stored.chunk));
}

// The same for strings: as the file holds them, as text and as a message.
Allowance allow_strings(const OpenDataSet& open, const Handle& file, const std::string& where) {
  hsize_t file_size = 0;
  H5Fget_filesize(file.get(), &file_size);
  const bool variable = H5Tis_variable_str(open.type.get()) > 0;
  const auto count = static_cast<double>(open.info.shape.element_count());
  const double text =
      variable ? static_cast<double>(file_size) : count * static_cast<double>(H5Tget_size(open.type.get()));
  const double bytes = 3 * text + count * static_cast<double>(sizeof(std::string) + 32);
  require_free_memory(bytes, where);
  extend_processor_time(seconds_a_request + bytes / bytes_a_second);
  return Allowance(static_cast<std::uint64_t>(bytes));
}

double byte_count(ElementType type, std::span<const std::int64_t> extents) {
  auto bytes = static_cast<double>(size_in_bytes(type));
  for (const std::int64_t extent : extents) bytes *= static_cast<double>(extent);
  return bytes;
}

SharedTensor read_into(const OpenDataSet& open, ElementType type, const Handle& memory, const Shape& shape,
                       const std::string& where) {
  SharedTensor result = shared_tensor(type, shape);
  Handle element = type_of(type);
  if (open.info.complex) element = complex_of(element);
  if (H5Dread(open.set.get(), element.get(), memory.get(), open.space.get(), H5P_DEFAULT,
              result.tensor.bytes()) < 0)
    refuse_read(open.set, where);
  if (type == ElementType::boolean)  // any other byte than 0 and 1 is no bool
    for (std::byte& byte : std::span(result.tensor.bytes(), result.tensor.byte_count()))
      byte = std::byte{byte != std::byte{0}};
  return result;
}

// The block of a data set; `first` and `count` have the rank of the file's data space.
SharedTensor read_selected(const OpenDataSet& open, ElementType wanted, std::span<const std::int64_t> first,
                           std::span<const std::int64_t> count, const std::string& where) {
  std::vector<std::int64_t> extents(count.begin(), count.end());
  if (open.info.complex) extents.push_back(2);
  require_filters(open.set.get(), where);
  const ElementType type = type_to_read(open, wanted);
  const Allowance room = allow_reading(open, first, count, byte_count(type, extents), where);
  const Shape shape{extents};
  if (shape.element_count() == 0) return shared_tensor(wanted, shape);
  const std::vector<hsize_t> start(first.begin(), first.end()), size(count.begin(), count.end());
  Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
  if (size.empty()) memory = Handle(H5Screate(H5S_SCALAR), H5Sclose);
  if (!size.empty())
    H5Sselect_hyperslab(open.space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr);
  SharedTensor read = read_into(open, type, memory, shape, where);
  if (type == wanted) return read;
  require_integers_of(wanted, read.tensor, where, first.empty() ? 0 : first[0]);
  SharedTensor result = shared_tensor(wanted, shape);
  const Tensor converted = read.tensor.converted(wanted);
  std::copy_n(converted.bytes(), converted.byte_count(), result.tensor.bytes());
  return result;
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

void require_free_memory(double bytes, const std::string& where) {
  constexpr double most = 1e18;  // more than any machine has, and a number that converts
  const Allowance asked(static_cast<std::uint64_t>(std::min(bytes, most)));
  require_memory(bytes, where);
}

SharedTensor shared_tensor(ElementType type, const Shape& shape) {
  const SharedBlock block(static_cast<std::size_t>(shape.element_count()) * size_in_bytes(type));
  if (block.size() == 0) return {block, Tensor(type, shape)};
  return {block, Tensor::over(type, shape, block.memory())};
}

DirectFile::DirectFile(const std::filesystem::path& path) : path_(path), file_(open_file(path)) {}

std::vector<DataSetInfo> DirectFile::data_sets() const {
  const Links::Names names = Links(file_, path_).names();
  std::vector<DataSetInfo> infos;
  for (const std::string& name : names.data_sets) infos.push_back(info_or_why(file_, path_, name));
  for (const auto& [name, why] : names.broken) infos.push_back({name, Shape{}, {}, why, false});
  std::ranges::sort(infos, {}, &DataSetInfo::name);
  return infos;
}

bool DirectFile::contains(std::string_view name) const {
  return std::ranges::binary_search(Links(file_, path_).names().data_sets, std::string(name));
}

DataSetInfo DirectFile::info(std::string_view name) const { return open_data_set(file_, path_, name).info; }

SharedTensor DirectFile::read(std::string_view name, ElementType type) const {
  const OpenDataSet open = open_data_set(file_, path_, name);
  const std::string where = place(path_, name);
  require_numeric(open, where);
  const std::vector<std::int64_t> count = extents_of(open.space.get());
  return read_selected(open, type, std::vector<std::int64_t>(count.size()), count, where);
}

SharedTensor DirectFile::read_rows(std::string_view name, ElementType type, std::int64_t first,
                                   std::int64_t count) const {
  const OpenDataSet open = open_data_set(file_, path_, name);
  const std::string where = place(path_, name);
  require_numeric(open, where);
  std::vector<std::int64_t> counts = extents_of(open.space.get());
  if (counts.empty()) refuse(ErrorCode::bad_file, where, "it is a single value and has no rows");
  std::vector<std::int64_t> firsts(counts.size());
  counts[0] = count;
  firsts[0] = first;
  require_inside(open, firsts, counts, where);
  return read_selected(open, type, firsts, counts, where);
}

SharedTensor DirectFile::read_block(std::string_view name, ElementType type,
                                    std::span<const std::int64_t> first,
                                    std::span<const std::int64_t> count) const {
  const OpenDataSet open = open_data_set(file_, path_, name);
  const std::string where = place(path_, name);
  require_numeric(open, where);
  require_inside(open, first, count, where);
  return read_selected(open, type, first, count, where);
}

std::optional<DataSetPlace> DirectFile::place_of(std::string_view name) const {
  const OpenDataSet open = open_data_set(file_, path_, name);
  require_numeric(open, place(path_, name));
  return hdf5::place_of(open.set.get(), open.type.get(), open.space.get(), *open.info.type,
                        open.info.complex);
}

std::vector<std::string> DirectFile::read_strings(std::string_view name) const {
  const OpenDataSet open = open_data_set(file_, path_, name);
  const std::string where = place(path_, name);
  if (!open.string)
    refuse(ErrorCode::bad_file, where,
           fmt::format("its elements are of type {}, not strings", open.info.type_name));
  require_filters(open.set.get(), where);
  const auto count = static_cast<std::size_t>(open.info.shape.element_count());
  const Allowance room = allow_strings(open, file_, where);
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

std::map<std::string, Attribute> DirectFile::attributes(std::string_view object) const {
  const std::string name = object.empty() ? "/" : std::string(object);
  const Links links(file_, path_);
  Handle open;
  try {
    open = links.object(name);
  } catch (const OutOfReach&) {
    return {};  // a name that may not be followed has none, as one that leads nowhere
  }
  if (!open.valid() && !links.why_broken(name).empty()) return {};
  if (!open.valid())
    refuse(ErrorCode::not_found, place(path_, object), "the file has no object of this name");
  return read_attributes(open.get());
}

}  // namespace superstep::data::hdf5
