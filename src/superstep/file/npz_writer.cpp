#include "superstep/file/npz_writer.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/file/npy.h"
#include "superstep/file/zip.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

struct Array {
  ElementType type = ElementType::f32;
  Shape shape;
  std::int64_t rows = 0;  // written so far
  fs::path file;
  std::ofstream stream;
};

}  // namespace

struct NpzWriter::State {
  fs::path path, folder;  // of the files of arrays
  std::map<std::string, Array, std::less<>> arrays;
  std::string comment;

  std::string place(std::string_view name) const {
    return fmt::format("{}: array '{}'", path.string(), printable(name));
  }
  void require(bool good, std::string_view name) const {
    if (!good) throw Error(ErrorCode::io, "cannot write: is the disk full?", place(name));
  }
};

NpzWriter::NpzWriter(const fs::path& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  require_writable(path);
  state_->folder = partial_name(path);
  make_folder(state_->folder);
}

NpzWriter::~NpzWriter() {
  std::error_code none;
  state_->arrays.clear();
  fs::remove_all(state_->folder, none);
}

void NpzWriter::create(std::string_view name, ElementType type, const Shape& shape) {
  const std::string header = format_npy_header(type, shape);
  const auto [place, added] = state_->arrays.try_emplace(std::string(name));
  if (!added) throw Error(ErrorCode::invalid_argument, "is there already", state_->place(name));
  Array& array = place->second;
  array.type = type;
  array.shape = shape;
  array.file = state_->folder / fmt::format("{}.npy", state_->arrays.size());
  array.stream.open(array.file, std::ios::binary);
  array.stream << header;
  state_->require(array.stream.good(), name);
}

void NpzWriter::write_rows(std::string_view name, std::int64_t first, const Tensor& rows) {
  const auto found = state_->arrays.find(name);
  if (found == state_->arrays.end())
    throw Error(ErrorCode::not_found, "there is no such array", state_->place(name));
  Array& array = found->second;
  const bool fits = rows.type() == array.type && rows.shape().rank() == array.shape.rank() &&
                    array.shape.rank() > 0 &&
                    std::equal(rows.shape().begin() + 1, rows.shape().end(), array.shape.begin() + 1);
  if (!fits || first != array.rows || first + rows.shape()[0] > array.shape[0])
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rows {} of {} are not what comes next: {} of {} are there", first,
                            to_string(rows.shape()), array.rows, to_string(array.shape)),
                state_->place(name));
  array.stream.write(reinterpret_cast<const char*>(rows.bytes()),
                     static_cast<std::streamsize>(rows.byte_count()));
  array.rows += rows.shape()[0];
  state_->require(array.stream.good(), name);
}

void NpzWriter::write(std::string_view name, const Tensor& tensor) {
  create(name, tensor.type(), tensor.shape());
  if (tensor.shape().rank() > 0) return write_rows(name, 0, tensor);
  Array& array = state_->arrays.find(name)->second;
  array.stream.write(reinterpret_cast<const char*>(tensor.bytes()),
                     static_cast<std::streamsize>(tensor.byte_count()));
  state_->require(array.stream.good(), name);
}

void NpzWriter::set_comment(std::string text) { state_->comment = std::move(text); }

void NpzWriter::close() {
  std::map<std::string, fs::path> files;
  for (auto& [name, array] : state_->arrays) {
    array.stream.close();
    state_->require(array.stream.good(), name);
    if (array.shape.rank() > 0 && array.rows != array.shape[0])
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} of {} rows were written", array.rows, array.shape[0]), state_->place(name));
    files[name + ".npy"] = array.file;
  }
  write_zip_of_files(state_->path, files, state_->comment);
}

}  // namespace superstep::data
