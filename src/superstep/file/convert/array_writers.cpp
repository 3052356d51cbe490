// HDF5 and npz: an array in the file for each of the source.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/file/convert/writer_forms.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz_writer.h"

namespace superstep::data {
namespace {

template <class Writer>
class ArrayWriter : public SampleWriter {
 public:
  ArrayWriter(const std::filesystem::path& path, SampleArraysToWrite arrays, std::int64_t samples)
      : writer_(path), arrays_(std::move(arrays)), samples_(samples), written_(arrays_.size()) {
    for (const SourceArray& array : arrays_)
      if (!array.single) writer_.create(array.name, array.type, array.shape());
  }

  void write(std::span<const Tensor> samples, ThreadPool&) override {
    auto tensor = samples.begin();
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (!arrays_[i].single && arrays_[i].rows == samples_) append(i, *tensor++);
  }
  void write_shared(std::size_t array, const Tensor& rows) override {
    arrays_[array].single ? writer_.write(arrays_[array].name, rows) : append(array, rows);
  }
  void close() override {
    if constexpr (std::is_same_v<Writer, Hdf5Writer>)
      for (const SourceArray& array : arrays_)
        if (!array.classes.empty())
          writer_.set_attribute(array.name, "classes", nlohmann::json(array.classes).dump());
    writer_.close();
  }

 private:
  void append(std::size_t array, const Tensor& rows) {
    writer_.write_rows(arrays_[array].name, written_[array], rows);
    written_[array] += rows.shape()[0];
  }

  Writer writer_;
  SampleArraysToWrite arrays_;
  std::int64_t samples_;
  std::vector<std::int64_t> written_;  // rows, by array
};

}  // namespace

std::unique_ptr<SampleWriter> open_hdf5_samples(const std::filesystem::path& path, SampleArraysToWrite arrays,
                                                std::int64_t samples) {
  return std::make_unique<ArrayWriter<Hdf5Writer>>(path, std::move(arrays), samples);
}

std::unique_ptr<SampleWriter> open_npz_samples(const std::filesystem::path& path, SampleArraysToWrite arrays,
                                               std::int64_t samples) {
  return std::make_unique<ArrayWriter<NpzWriter>>(path, std::move(arrays), samples);
}

}  // namespace superstep::data
