// Inside of the writers' layer: forms that hold a record a sample, one behind the other.
#pragma once

#include <string>
#include <vector>

#include "superstep/file/convert/output_file.h"
#include "superstep/file/convert/writer_forms.h"

namespace superstep::data {

class RecordWriter : public SampleWriter {
 public:
  RecordWriter(const WriterPlace& place, SampleArraysToWrite arrays);

  void write(std::span<const Tensor> samples, ThreadPool& pool) override;
  void close() override;
  std::string mark() override;

 protected:
  // The record of sample `row`; `values` are its arrays' rows. Thread-safe.
  virtual std::string encode(std::int64_t row, std::span<const Tensor> values) const = 0;
  virtual std::string end() const { return {}; }  // behind the last

  const std::vector<SourceArray>& arrays() const { return arrays_; }
  std::string place(std::int64_t row, std::size_t array) const;

 private:
  std::string shown_;
  OutputFile file_;
  SampleArraysToWrite arrays_;
  std::int64_t rows_ = 0;
};

// PNG, of bytes [channels, height, width].
std::string png_of(const Tensor& picture);

}  // namespace superstep::data
