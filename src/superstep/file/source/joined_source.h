// Several sources of the same arrays, one behind the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// The rows that most arrays have, those of the samples; of equally many the larger number. 0: none has rows.
std::int64_t usual_rows(const SampleSource& source);

// Arrays that have as many rows as most of a source's have are joined; others, which samples share, must
// agree in shape and are the first source's. `files` are their names, for errors. Throws Error (bad_file)
// naming the file and array that does not fit.
std::unique_ptr<SampleSource> joined_sources(std::vector<std::unique_ptr<SampleSource>> parts,
                                             std::vector<std::string> files);

}  // namespace superstep::data
