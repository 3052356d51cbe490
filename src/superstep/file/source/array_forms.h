// Sources of the forms that hold arrays: one function a form, for the table in forms.cpp.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::data {

std::unique_ptr<SampleSource> open_npy_source(const std::filesystem::path& path, const SourceRequest&);
// Arrays that are stored as they are, as numpy.savez() does, are read row by row.
std::unique_ptr<SampleSource> open_npz_source(const std::filesystem::path& path, const SourceRequest&);
std::unique_ptr<SampleSource> open_safetensors_source(const std::filesystem::path& path,
                                                      const SourceRequest&);
std::unique_ptr<SampleSource> open_hdf5_source(const std::filesystem::path& path, const SourceRequest&);

// CSV and TSV with a header: a column is an array of f64. Of an array that is wanted with several numbers a
// row, the columns that are named after it and numbered ("x0", "x_1", "x[1]") are one; those that are left
// are, where they are as many as the only wanted array that nothing is named after has.
bool is_csv(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_csv_source(const std::filesystem::path& path,
                                              const SourceRequest& request);

}  // namespace superstep::data
