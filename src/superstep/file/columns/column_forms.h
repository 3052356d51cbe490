// Sources of the forms that hold tables by columns: one function a form, for the table in
// file/source/forms.cpp.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::data {

// A column is an array: numbers, or lists of numbers of one shape (lists in one another, tensors of a fixed
// shape); what is in a structure has the name "STRUCTURE.MEMBER". Columns are joined to the arrays that are
// wanted as those of text tables are (file/source/column_arrays.h); where their types differ, in f64. A
// column of bytes whose first row is a picture is pictures; a structure of `bytes` and `path`, as the package
// `datasets` writes them, has the name of the structure. What is missing is NaN in floating point, and an
// error of its row elsewhere.
bool is_parquet(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_parquet(const std::filesystem::path& path, const SourceRequest& request);
// Files (Feather, version 2) and streams of Arrow.
bool is_arrow(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_arrow(const std::filesystem::path& path, const SourceRequest& request);

}  // namespace superstep::data
