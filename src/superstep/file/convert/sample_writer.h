// The forms that samples are written in: one class and one line of the table in convert/writer_forms.cpp
// each. File forms are read by file/source/forms.h.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// Writes to a temporary file beside its path, which close() puts in place. One that is destroyed before that
// leaves nothing behind. Throws Error (io, unsupported) naming the file, the sample and the array.
class SampleWriter {
 public:
  virtual ~SampleWriter() = default;
  // The samples that come next: a tensor [n, ...] for each array that has a row a sample, in their order.
  virtual void write(std::span<const Tensor> samples, ThreadPool& pool) = 0;
  // The rows of another array that come next, of a single value itself; of forms that hold such.
  virtual void write_shared(std::size_t array, const Tensor& rows);
  virtual void close() = 0;
};

struct WriterForm {
  const char* name;   // of the form that reads it
  const char* words;  // for people: "HDF5"
  std::vector<std::string_view> endings;
  bool holds_shared;  // arrays of another length than the samples', and single values
  bool holds_shapes;  // else arrays are flat lists, except for pictures
  // Why it cannot hold an array; empty: it can.
  std::string (*why_not)(const SourceArray& array);
  // `arrays`, named as they are in the file; those of `samples` rows have a row a sample.
  std::unique_ptr<SampleWriter> (*open)(const std::filesystem::path& path, std::vector<SourceArray> arrays,
                                        std::int64_t samples);
  const char* read_as = nullptr;  // the form that reads it, where that has another name
  bool folder = false;            // what is written is a folder
};

std::span<const WriterForm> writer_forms();
// By its name, or where that is empty by the ending of the file's name. Throws Error (invalid_argument) with
// those that there are.
const WriterForm& find_writer_form(std::string_view name, const std::filesystem::path& path);

// Whether an array is pictures, as forms of records hold them: bytes of one channel or three.
bool is_of_pictures(const SourceArray& array);

}  // namespace superstep::data
