// Options that say how samples are read, and the source that they say: of commands that look at data.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "superstep/file/source/request.h"

namespace superstep::cli {

struct SampleOptions {
  std::string workload;   // whose names and sizes are wanted; empty: as the data have them
  std::string tokenizer;  // of texts
  std::int64_t length = 128, stride = 128;
  bool skip_broken = false;
  std::vector<std::string> scale, offset;  // data::scalings_from_text()
};

// --for, --skip-broken, --tokenizer, --length, --stride, --scale, --offset.
void add_sample_options(CLI::App& command, SampleOptions& options);
data::SourceRequest request_of(const SampleOptions& options);

// Texts and questions where a tokenizer is given, else any form of file/source/forms.h. Throws what opening
// them throws, and Error (invalid_argument) where --length or --stride are given without a tokenizer.
std::unique_ptr<data::SampleSource> open_samples(const std::string& path, const SampleOptions& options);

}  // namespace superstep::cli
