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

// Where a writer writes, and from where on.
struct WriterPlace {
  std::filesystem::path path;  // a file or folder of its own
  std::string shown;           // how errors name it
  std::string mark;            // of the writer that stopped there; empty: from the beginning
};

// Writes to its path, which close() makes whole. Throws Error (io, unsupported) naming the file, the sample
// and the array.
class SampleWriter {
 public:
  virtual ~SampleWriter() = default;
  // The samples that come next: a tensor [n, ...] for each array that has a row a sample, in their order.
  virtual void write(std::span<const Tensor> samples, ThreadPool& pool) = 0;
  // The rows of another array that come next, of a single value itself; of forms that hold such.
  virtual void write_shared(std::size_t array, const Tensor& rows);
  virtual void close() = 0;
  // What another one goes on with after the samples that were written so far, whatever became of this one;
  // they are on the disk then. The file is the same in every byte as if it had not been stopped.
  virtual std::string mark() = 0;
};

struct WriterForm {
  const char* name;   // of the form that reads it
  const char* words;  // for people: "HDF5"
  std::vector<std::string_view> endings;
  bool holds_shared;  // arrays of another length than the samples', and single values
  bool holds_shapes;  // else arrays are flat lists, except for pictures
  // Why it cannot hold an array; empty: it can.
  std::string (*why_not)(const SourceArray& array);
  // `arrays`, named as they are in the file; those of `samples` rows have a row a sample. Throws Error
  // (bad_file) where what is there is not what the mark says.
  std::unique_ptr<SampleWriter> (*open)(const WriterPlace& place, std::vector<SourceArray> arrays,
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
