// HDF5 and npz: an array in the file for each of the source.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/convert/output_file.h"
#include "superstep/file/convert/writer_forms.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/zip.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.bytes(), tensor.byte_count()}; }

// Rows of each array in their order, wherever a form puts them.
class ArrayWriter : public SampleWriter {
 public:
  ArrayWriter(SampleArraysToWrite arrays, std::int64_t samples)
      : arrays_(std::move(arrays)), samples_(samples) {}

  void write(std::span<const Tensor> samples, ThreadPool&) override {
    auto tensor = samples.begin();
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (!arrays_[i].single && arrays_[i].rows == samples_) append(i, bytes_of(*tensor++));
  }
  void write_shared(std::size_t array, const Tensor& rows) override { append(array, bytes_of(rows)); }

 protected:
  virtual void append(std::size_t array, std::span<const std::byte> rows) = 0;
  const SampleArraysToWrite& arrays() const { return arrays_; }

 private:
  SampleArraysToWrite arrays_;
  std::int64_t samples_;
};

// The library makes the file with room for all elements in their places and closes it; they are written to
// those, so that the file is a whole one at every moment.
class Hdf5Samples : public ArrayWriter {
 public:
  Hdf5Samples(const WriterPlace& place, SampleArraysToWrite given, std::int64_t samples)
      : ArrayWriter(std::move(given), samples), written_(arrays().size()) {
    if (place.mark.empty()) {
      make(place.path);
    } else {
      const json mark = read_mark(place);
      places_ = mark.value("places", places_);
      written_ = mark.value("written", written_);
      length_ = mark.value("length", std::uint64_t{0});
    }
    if (places_.size() != arrays().size() || written_.size() != arrays().size())
      throw Error(ErrorCode::bad_file, "is not what was left to go on with", place.shown);
    file_ = std::make_unique<OutputFile>(place.path, place.shown, length_);
  }

  void close() override {}
  std::string mark() override {
    file_->sync();
    return json{{"places", places_}, {"written", written_}, {"length", length_}}.dump();
  }

 private:
  void make(const fs::path& path) {
    Hdf5Writer writer(path);
    for (const SourceArray& array : arrays()) {
      writer.create(array.name, array.type, array.shape(), {.at_once = true});
      places_.push_back(writer.place_of(array.name).value_or(0));
      if (!array.classes.empty()) writer.set_attribute(array.name, "classes", json(array.classes).dump());
    }
    writer.close();
    length_ = fs::file_size(path);
  }

  void append(std::size_t array, std::span<const std::byte> rows) override {
    if (rows.empty()) return;
    if (places_[array] == 0)
      throw Error(ErrorCode::internal, "HDF5 gave an array no room", arrays()[array].name);
    file_->write_at(places_[array] + written_[array], rows);
    written_[array] += rows.size();
  }

  std::unique_ptr<OutputFile> file_;
  std::vector<std::uint64_t> places_, written_;  // bytes, by array: where they begin, how many are there
  std::uint64_t length_ = 0;
};

// A file of NumPy an array, beside the archive that close() makes of them.
class NpzSamples : public ArrayWriter {
 public:
  NpzSamples(const WriterPlace& place, SampleArraysToWrite given, std::int64_t samples)
      : ArrayWriter(std::move(given), samples), path_(place.path), folder_(place.path.string() + ".arrays") {
    std::vector<std::uint64_t> lengths(arrays().size(), 0);
    if (place.mark.empty())
      make_folder(folder_);
    else
      lengths = read_mark(place).value("lengths", std::vector<std::uint64_t>());
    if (lengths.size() != arrays().size() || !fs::is_directory(folder_))
      throw Error(ErrorCode::bad_file, "is not what was left to go on with", place.shown);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const SourceArray& array = arrays()[i];
      files_.push_back(std::make_unique<OutputFile>(file_of(i), place.shown, lengths[i]));
      if (place.mark.empty()) files_.back()->write(format_npy_header(array.type, array.shape()));
    }
  }
  ~NpzSamples() override {
    std::error_code none;
    if (closed_) fs::remove_all(folder_, none);
  }

  void close() override {
    std::map<std::string, fs::path> files;
    for (std::size_t i = 0; i < files_.size(); ++i) files[arrays()[i].name + ".npy"] = file_of(i);
    write_zip_of_files(path_, files, "");
    closed_ = true;
  }
  std::string mark() override {
    json lengths = json::array();
    for (const auto& file : files_) {
      file->sync();
      lengths.push_back(file->length());
    }
    return json{{"lengths", lengths}}.dump();
  }

 private:
  fs::path file_of(std::size_t array) const { return folder_ / fmt::format("{}.npy", array); }
  void append(std::size_t array, std::span<const std::byte> rows) override { files_[array]->write(rows); }

  fs::path path_, folder_;
  std::vector<std::unique_ptr<OutputFile>> files_;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<SampleWriter> open_hdf5_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                std::int64_t samples) {
  return std::make_unique<Hdf5Samples>(place, std::move(arrays), samples);
}

std::unique_ptr<SampleWriter> open_npz_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                               std::int64_t samples) {
  return std::make_unique<NpzSamples>(place, std::move(arrays), samples);
}

}  // namespace superstep::data
