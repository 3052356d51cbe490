#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/system/process_limits.h"
#include "superstep/base/text.h"
#include "superstep/file/hdf5/hdf5_attributes.h"
#include "superstep/file/hdf5/hdf5_direct.h"
#include "superstep/file/hdf5/hdf5_links.h"

namespace superstep::data::hdf5 {
namespace {

// A member of the records: a block of numbers or of strings, and what its columns are called.
struct Block {
  std::string member;
  std::vector<std::string> columns;
  bool text = false;
  std::size_t width = 0;  // bytes of a string
};

Handle member_type(const Handle& record, unsigned member) {
  return Handle(H5Tget_member_type(record.get(), member), H5Tclose);
}

std::string member_name(const Handle& record, unsigned member) {
  char* name = H5Tget_member_name(record.get(), member);
  std::string text = name != nullptr ? name : "";
  H5free_memory(name);
  return text;
}

// Elements of an array member, 1 of a plain one; its element type.
std::size_t element_count(const Handle& type) {
  if (H5Tget_class(type.get()) != H5T_ARRAY) return 1;
  hsize_t extents[H5S_MAX_RANK];
  const int rank = H5Tget_array_dims2(type.get(), extents);
  std::size_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= extents[axis];
  return count;
}

Handle element_type(const Handle& type) {
  return Handle(H5Tget_class(type.get()) == H5T_ARRAY ? H5Tget_super(type.get()) : H5Tcopy(type.get()),
                H5Tclose);
}

herr_t keep_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

struct Frames {
  const std::filesystem::path& path;
  const Handle& file;

  Handle open_table(const std::string& key) const {
    Handle table = Links(file, path).data_set(key + "/table");
    if (table.valid()) return table;
    std::vector<std::string> keys;
    H5Literate(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, keep_name, &keys);
    throw Error(ErrorCode::not_found, "no frame of this name",
                fmt::format("{}: frame '{}'", path.string(), key), unknown_name_hint(key, keys));
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const {
    throw Error(ErrorCode::bad_file, message, fmt::format("{}: frame '{}'", path.string(), key));
  }

  Block describe(const std::string& key, const Handle& table, const Handle& record, unsigned member) const {
    Block block{member_name(record, member), {}};
    const Handle type = member_type(record, member), element = element_type(type);
    block.text = H5Tget_class(element.get()) == H5T_STRING;
    if (!block.text && !kind_of(element.get()).numeric)
      refuse(key, fmt::format("'{}' is neither numbers nor strings", block.member));
    if (block.text) block.width = H5Tget_size(element.get());
    const std::size_t count = element_count(type);
    const auto attributes = read_attributes(table.get());
    const auto kind = attributes.find(block.member + "_kind");
    const auto* pickled = kind == attributes.end() ? nullptr : std::get_if<std::string>(&kind->second);
    const bool is_block = block.member.starts_with("values_block_");
    block.columns = is_block && pickled != nullptr
                        ? unpickle_strings(*pickled, fmt::format("{}: frame '{}'", path.string(), key))
                        : std::vector<std::string>{block.member};
    if (block.columns.size() != count || (block.text && count != 1))
      refuse(key, fmt::format("'{}' has {} columns and {} names", block.member, count, block.columns.size()));
    return block;
  }

  // Every member but the index.
  std::vector<Block> blocks_of(const std::string& key, const Handle& table) const {
    const Handle record(H5Dget_type(table.get()), H5Tclose);
    if (H5Tget_class(record.get()) != H5T_COMPOUND) refuse(key, "its table does not consist of records");
    std::vector<Block> blocks;
    for (int member = 0; member < H5Tget_nmembers(record.get()); ++member)
      if (member_name(record, static_cast<unsigned>(member)) != "index")
        blocks.push_back(describe(key, table, record, static_cast<unsigned>(member)));
    return blocks;
  }

  std::int64_t rows_of(const std::string& key, const Handle& table) const {
    const Handle space(H5Dget_space(table.get()), H5Sclose);
    if (H5Sget_simple_extent_ndims(space.get()) != 1) refuse(key, "its table has not one axis");
    hsize_t rows = 0;
    H5Sget_simple_extent_dims(space.get(), &rows, nullptr);
    return static_cast<std::int64_t>(rows);
  }

  // One member of the rows, converted by the library: elements of `element` one after the other.
  void read_member(const std::string& key, const Handle& table, const std::string& member,
                   const Handle& element, std::size_t count, std::int64_t first, std::int64_t rows,
                   void* memory) const {
    const hsize_t width = count, start = static_cast<hsize_t>(first), length = static_cast<hsize_t>(rows);
    const bool array = element_count(member_type_of(table, member)) > 1 || is_array(table, member);
    const Handle inner(array ? H5Tarray_create2(element.get(), 1, &width) : H5Tcopy(element.get()), H5Tclose);
    const Handle record(H5Tcreate(H5T_COMPOUND, H5Tget_size(inner.get())), H5Tclose);
    H5Tinsert(record.get(), member.c_str(), 0, inner.get());
    const Handle space(H5Dget_space(table.get()), H5Sclose),
        target(H5Screate_simple(1, &length, nullptr), H5Sclose);
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr);
    if (H5Dread(table.get(), record.get(), target.get(), space.get(), H5P_DEFAULT, memory) < 0)
      refuse(key, "cannot be read: " + last_error_text());
  }

  static Handle member_type_of(const Handle& table, const std::string& member) {
    const Handle record(H5Dget_type(table.get()), H5Tclose);
    return member_type(record, static_cast<unsigned>(H5Tget_member_index(record.get(), member.c_str())));
  }
  static bool is_array(const Handle& table, const std::string& member) {
    return H5Tget_class(member_type_of(table, member).get()) == H5T_ARRAY;
  }
};

std::vector<float> read_numbers(const Frames& frames, const std::string& key, const Handle& table,
                                const Block& block, std::int64_t first, std::int64_t count) {
  const Handle type(H5Tcopy(H5T_NATIVE_FLOAT), H5Tclose);
  std::vector<float> memory(block.columns.size() * static_cast<std::size_t>(count));
  frames.read_member(key, table, block.member, type, block.columns.size(), first, count, memory.data());
  return memory;
}

std::vector<std::string> read_texts(const Frames& frames, const std::string& key, const Handle& table,
                                    const Block& block, std::int64_t first, std::int64_t count) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), block.width);
  std::string memory(block.width * static_cast<std::size_t>(count), '\0');
  frames.read_member(key, table, block.member, type, 1, first, count, memory.data());
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) {
    const char* text = memory.data() + static_cast<std::size_t>(i) * block.width;
    texts.emplace_back(text, strnlen(text, block.width));
  }
  return texts;
}

// A record as it is stored, converted, put together, and its texts once more as strings and as a message.
Allowance allow_records(const Handle& table, std::int64_t count, const std::string& where) {
  const Handle record(H5Dget_type(table.get()), H5Tclose);
  const double bytes = 8.0 * static_cast<double>(H5Tget_size(record.get())) * static_cast<double>(count);
  require_free_memory(bytes, where);
  extend_processor_time(seconds_a_request + bytes / bytes_a_second);
  return Allowance(static_cast<std::uint64_t>(bytes));
}

// Columns of a block and their values, row by row.
using Part = std::pair<std::size_t, std::vector<float>>;

SharedTensor side_by_side(const std::vector<Part>& parts, std::int64_t rows, std::int64_t width) {
  SharedTensor whole = shared_tensor(ElementType::f32, Shape{rows, width});
  auto values = whole.tensor.as<float>().begin();
  for (std::int64_t row = 0; row < rows; ++row)
    for (const auto& [columns, part] : parts)
      values = std::copy_n(part.begin() + row * static_cast<std::ptrdiff_t>(columns), columns, values);
  return whole;
}

}  // namespace

std::vector<std::string> frame_keys(const DirectFile& file) {
  std::vector<std::string> names, keys;
  H5Literate(file.file().get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, keep_name, &names);
  for (const std::string& name : names)
    if (Links(file.file(), file.path()).data_set(name + "/table").valid()) keys.push_back(name);
  return keys;
}

std::int64_t frame_rows(const DirectFile& file, const std::string& key) {
  const Frames frames{file.path(), file.file()};
  return frames.rows_of(key, frames.open_table(key));
}

SharedFrame read_frame(const DirectFile& file, const std::string& key, std::int64_t first,
                       std::int64_t count) {
  const Frames frames{file.path(), file.file()};
  const Handle table = frames.open_table(key);
  const std::int64_t rows = frames.rows_of(key, table);
  const std::string where = fmt::format("{}: frame '{}'", file.path().string(), key);
  if (first < 0 || count < 0 || first > rows - count)
    throw Error(ErrorCode::invalid_argument, fmt::format("rows {} to {} of {}", first, first + count, rows),
                where);
  const Allowance room = allow_records(table, count, where);
  SharedFrame result;
  std::vector<Part> parts;
  for (const Block& block : frames.blocks_of(key, table)) {
    if (block.text) {
      result.frame.text[block.columns[0]] = read_texts(frames, key, table, block, first, count);
    } else {
      auto& columns = result.frame.columns;
      columns.insert(columns.end(), block.columns.begin(), block.columns.end());
      parts.emplace_back(block.columns.size(), read_numbers(frames, key, table, block, first, count));
    }
  }
  result.values = side_by_side(parts, count, static_cast<std::int64_t>(result.frame.columns.size()));
  return result;
}

}  // namespace superstep::data::hdf5
