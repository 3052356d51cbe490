// Forms of files that are known and not read: what makes them into one that is.
#pragma once

#include <filesystem>

namespace superstep::data {

// Throws Error (unsupported) naming the form and the command that converts it where `path` is such a file, or
// a folder whose first file is one: ROOT, DICOM. Nothing of others.
void refuse_foreign_form(const std::filesystem::path& path);

}  // namespace superstep::data
