#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/system/partial_files.h"
#include "superstep/file/hdf5/hdf5_handle.h"
#include "superstep/file/hdf5/pytables.h"

namespace superstep::data {

using hdf5::Entry;
using hdf5::Handle;

namespace {

// PyTables takes strings marked as UTF-8 for text and others for bytes, among them what is pickled.
void set_text(const Handle& object, const std::string& name, const std::string& text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.get(), std::max<std::size_t>(text.size(), 1));
  if (!text.ends_with('.')) H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Handle attribute(
      H5Acreate2(object.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  H5Awrite(attribute.get(), type.get(), text.c_str());
}

void set_integer(const Handle& object, const std::string& name, std::int64_t value,
                 hid_t type = H5T_NATIVE_INT64) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(object.get(), name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value);
}

// What PyTables writes on every group.
void set_group_attributes(const Handle& group) {
  set_text(group, "CLASS", "GROUP");
  set_text(group, "TITLE", "");
  set_text(group, "VERSION", "1.0");
}

// Python objects of fixed form, pickled by protocol 0.
constexpr const char* pickled_none = "N.";
constexpr const char* pickled_empty_list = "(l.";
constexpr const char* pickled_index_columns = "(l(I0\nVindex\ntp1\na.";
constexpr const char* pickled_info = "(dI1\n(dVnames\n(lNasVtype\nVIndex\nssVindex\n(ds.";

struct Frame {
  Handle table, record;
  std::int64_t rows = 0;
  std::size_t columns = 0, text_columns = 0, width = 0;
  std::size_t row_bytes() const {
    return sizeof(std::int64_t) + columns * sizeof(float) + text_columns * width;
  }
};

Handle float_block(std::size_t columns) {
  const hsize_t width = columns;
  return Handle(H5Tarray_create2(H5T_IEEE_F32LE, 1, &width), H5Tclose);
}

Handle string_block(std::size_t width) {
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text.get(), width);
  const hsize_t one = 1;
  return Handle(H5Tarray_create2(text.get(), 1, &one), H5Tclose);
}

std::string block_name(std::size_t number) { return fmt::format("values_block_{}", number); }

Handle record_type(const Frame& frame) {
  Handle record(H5Tcreate(H5T_COMPOUND, frame.row_bytes()), H5Tclose);
  std::size_t offset = sizeof(std::int64_t), block = 0;
  H5Tinsert(record.get(), "index", 0, H5T_STD_I64LE);
  if (frame.columns > 0) {
    H5Tinsert(record.get(), block_name(block++).c_str(), offset, float_block(frame.columns).get());
    offset += frame.columns * sizeof(float);
  }
  for (std::size_t i = 0; i < frame.text_columns; ++i, offset += frame.width)
    H5Tinsert(record.get(), block_name(block++).c_str(), offset, string_block(frame.width).get());
  return record;
}

// What pandas looks for on the group of a frame.
void set_frame_attributes(const Handle& group, const std::vector<std::string>& all, std::size_t blocks) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < blocks; ++i) names.push_back(block_name(i));
  const std::string columns = pickle_strings(all);
  set_group_attributes(group);
  set_text(group, "pandas_type", "frame_table");
  set_text(group, "pandas_version", "0.15.2");
  set_text(group, "table_type", "appendable_frame");
  set_text(group, "encoding", "UTF-8");
  set_text(group, "errors", "strict");
  set_text(group, "index_cols", pickled_index_columns);
  set_text(group, "data_columns", pickled_empty_list);
  set_text(group, "values_cols", pickle_strings(names));
  set_text(group, "non_index_axes", "(l(I1\n" + columns.substr(0, columns.size() - 1) + "ta.");
  set_text(group, "info", pickled_info);
  set_text(group, "nan_rep", "nan");
  set_integer(group, "levels", 1);
}

void set_block_attributes(const Handle& table, std::size_t number, const std::vector<std::string>& columns,
                          const std::string& type) {
  const std::string name = block_name(number);
  set_text(table, name + "_kind", pickle_strings(columns));
  set_text(table, name + "_dtype", type);
  set_text(table, name + "_meta", pickled_none);
}

}  // namespace

struct PandasWriter::State {
  std::filesystem::path path;
  std::string partial;
  Handle file;
  std::map<std::string, Frame> frames;
  bool closed = false;

  ~State() {
    frames.clear();
    file.close();
    if (!closed) ::unlink(partial.c_str());
  }
};

PandasWriter::PandasWriter(const std::filesystem::path& path) : state_(std::make_unique<State>()) {
  const Entry entry;
  state_->path = path;
  state_->partial = partial_name(path);
  state_->file =
      Handle(H5Fcreate(state_->partial.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  if (!state_->file.valid()) throw hdf5::io_error(path, "", "write");
  const Handle root(H5Gopen2(state_->file.get(), "/", H5P_DEFAULT), H5Gclose);
  set_group_attributes(root);
  set_text(root, "PYTABLES_FORMAT_VERSION", "2.1");
}

PandasWriter::~PandasWriter() {
  const Entry entry;
  state_.reset();
}

void PandasWriter::create(const std::string& key, std::int64_t rows, const std::vector<std::string>& columns,
                          const std::vector<std::string>& text_columns, std::size_t width) {
  const Entry entry;
  constexpr std::size_t chunk_bytes = 1 << 18;
  const Handle group(H5Gcreate2(state_->file.get(), key.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                     H5Gclose);
  Frame frame{Handle(), Handle(), rows, columns.size(), text_columns.size(), width};
  frame.record = record_type(frame);
  std::vector<std::string> all = columns;
  all.insert(all.end(), text_columns.begin(), text_columns.end());
  const std::size_t float_blocks = columns.empty() ? 0 : 1;
  set_frame_attributes(group, all, float_blocks + text_columns.size());
  const hsize_t extent = static_cast<hsize_t>(rows), limit = H5S_UNLIMITED,
                chunk = std::max<hsize_t>(1, chunk_bytes / frame.row_bytes());
  const Handle space(H5Screate_simple(1, &extent, &limit), H5Sclose),
      properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(properties.get(), 1, &chunk);
  H5Pset_obj_track_times(properties.get(), false);
  frame.table = Handle(H5Dcreate2(group.get(), "table", frame.record.get(), space.get(), H5P_DEFAULT,
                                  properties.get(), H5P_DEFAULT),
                       H5Dclose);
  if (!frame.table.valid()) throw hdf5::io_error(state_->path, key, "make it");
  set_text(frame.table, "CLASS", "TABLE");
  set_text(frame.table, "TITLE", "");
  set_text(frame.table, "VERSION", "2.7");
  set_text(frame.table, "index_kind", "integer");
  set_integer(frame.table, "NROWS", rows);
  set_text(frame.table, "FIELD_0_NAME", "index");
  for (std::size_t i = 0; i < float_blocks + text_columns.size(); ++i)
    set_text(frame.table, fmt::format("FIELD_{}_NAME", i + 1), block_name(i));
  if (float_blocks > 0) set_block_attributes(frame.table, 0, columns, "float32");
  for (std::size_t i = 0; i < text_columns.size(); ++i)
    set_block_attributes(frame.table, float_blocks + i, {text_columns[i]}, fmt::format("bytes{}", 8 * width));
  state_->frames.insert_or_assign(key, std::move(frame));
}

void PandasWriter::write_rows(const std::string& key, std::int64_t first, std::span<const float> values,
                              const std::vector<std::vector<std::string>>& text) {
  const Entry entry;
  Frame& frame = state_->frames.at(key);
  const std::size_t count = frame.columns > 0 ? values.size() / frame.columns : text.at(0).size();
  std::vector<char> records(count * frame.row_bytes(), '\0');
  for (std::size_t row = 0; row < count; ++row) {
    char* at = records.data() + row * frame.row_bytes();
    const std::int64_t index = first + static_cast<std::int64_t>(row);
    std::memcpy(at, &index, sizeof index);
    at += sizeof index;
    std::memcpy(at, values.data() + row * frame.columns, frame.columns * sizeof(float));
    at += frame.columns * sizeof(float);
    for (const auto& column : text) {
      std::memcpy(at, column.at(row).data(), std::min(column[row].size(), frame.width));
      at += frame.width;
    }
  }
  const hsize_t start = static_cast<hsize_t>(first), length = count;
  const Handle space(H5Dget_space(frame.table.get()), H5Sclose),
      memory(H5Screate_simple(1, &length, nullptr), H5Sclose);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr);
  if (H5Dwrite(frame.table.get(), frame.record.get(), memory.get(), space.get(), H5P_DEFAULT,
               records.data()) < 0)
    throw hdf5::io_error(state_->path, key, "write it");
}

void PandasWriter::close() {
  const Entry entry;
  state_->frames.clear();
  const bool written = state_->file.close();
  std::error_code error;
  if (written) std::filesystem::rename(state_->partial, state_->path, error);
  if (!written || error) throw Error(ErrorCode::io, "could not be written", state_->path.string());
  state_->closed = true;
}

}  // namespace superstep::data
