// A page of what is in a file of arrays (HDF5, npy, npz, weights, an ONNX model's parameters) or in samples
// of any form (folders of pictures, archives, records): every data set with its shape, type, range,
// attributes and meaning, pictures of the image-like ones, histograms, first rows of the others.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/page/page.h"
#include "superstep/show/sample_arrays.h"
#include "superstep/show/statistics.h"

namespace superstep::show {

struct ShowOptions {
  int pictures = 12;              // about so many of each data set
  std::vector<std::string> only;  // names of the data sets to draw; empty for all
  data::SourceRequest request;    // how samples are wanted, of forms that have a choice
  std::shared_ptr<const data::SampleSource> source = {};  // what the path was opened as already, if it was
};

struct ShownDataSet {
  data::DataSetInfo info;
  std::string unit, meaning;  // from its attributes; may be empty
  Statistics statistics;      // of numeric data sets
};

struct Shown {
  std::vector<ShownDataSet> data_sets;
  std::vector<Error> failures;  // data sets that could not be read; the page names them
  page::Page page;
  std::string summary = {};                 // of the whole file in one line; may be empty
  std::optional<SampleFacts> samples = {};  // of a source of samples
};

// Throws Error when the file cannot be opened or listed, or when a name of `only` is not in it. A data set
// that is damaged does not keep the others from being drawn.
Shown show_file(const std::filesystem::path& path, const ShowOptions& options);

std::string range_text(const ShownDataSet& data_set);  // "0 to 4,210"; empty without numbers

}  // namespace superstep::show
