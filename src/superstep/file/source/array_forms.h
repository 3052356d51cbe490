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

}  // namespace superstep::data
