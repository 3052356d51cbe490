// The forms of files that samples are read from, and how what a user names is read: one table.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "superstep/file/source/request.h"
#include "superstep/file/source/sample_source.h"

namespace superstep::data {

struct SourceForm {
  const char* name;   // "npz"
  const char* words;  // for people: "arrays of NumPy in a zip archive"
  // Whether a file or folder is of this form, by its bytes or what it holds, at a glance; throws nothing that
  // opening it would not throw.
  bool (*takes)(const std::filesystem::path& path);
  // Throws Error naming what is wrong with the file. Reads what it must to know arrays and rows, not more.
  std::unique_ptr<SampleSource> (*open)(const std::filesystem::path& path, const SourceRequest& request);
};

// In the order in which they are asked.
std::span<const SourceForm> source_forms();
// The form that takes a path; null: none does.
const SourceForm* form_for(const std::filesystem::path& path);

// What `given` names (file/source/paths.h), by its form; several files are one source, one behind the other,
// and named arrays are one beside the other.
// Throws Error (not_found, bad_file, unsupported) with the forms that there are.
std::unique_ptr<SampleSource> open_source(const std::filesystem::path& given,
                                          const SourceRequest& request = {});

// Whether what `given` names has an array of this name. Throws what open_source() throws.
bool has_array(const std::filesystem::path& given, std::string_view name);

}  // namespace superstep::data
