// Samples of any form that file/source/forms.h knows as a file of arrays: folders of pictures, archives,
// records, several files at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "superstep/file/source/request.h"
#include "superstep/show/array_file.h"

namespace superstep::show {

// Samples of one class.
struct ClassCount {
  std::string name;
  std::int64_t samples = 0, training = 0;
};

// What a source of samples says beside its arrays.
struct SampleFacts {
  std::string form, words;  // of the file, or of the first of several: "tar", "a web data set: ..."
  std::int64_t files = 1;   // that were named
  std::int64_t samples = 0;
  double sample_bytes = 0;     // of all its arrays, decoded
  std::int64_t training = -1;  // the first so many train; -1: nobody says
  std::vector<ClassCount> classes;
  std::vector<std::string> others, notes;
};

// Whether a path is read as samples rather than as one file of arrays that `show` knows by itself.
bool is_shown_as_samples(const std::filesystem::path& path);

// Arrays are read a few rows at a time. Throws what data::open_source() throws.
std::unique_ptr<ArrayFile> open_sample_arrays(const std::filesystem::path& path,
                                              const data::SourceRequest& request);
// The same of a source that is open, of texts.
std::unique_ptr<ArrayFile> sample_arrays_of(std::shared_ptr<const data::SampleSource> source);

}  // namespace superstep::show
