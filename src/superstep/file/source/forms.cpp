#include "superstep/file/source/forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/file/columns/column_forms.h"
#include "superstep/file/detector/detector_forms.h"
#include "superstep/file/foreign_forms.h"
#include "superstep/file/form.h"
#include "superstep/file/pictures/picture_forms.h"
#include "superstep/file/pictures/picture_list.h"
#include "superstep/file/records/lmdb.h"
#include "superstep/file/records/record_forms.h"
#include "superstep/file/records/tar.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/joined_source.h"
#include "superstep/file/source/named_source.h"
#include "superstep/file/source/paths.h"
#include "superstep/file/zarr/zarr_form.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

bool is_npy(const fs::path& path) { return form_of(path) == FileForm::npy; }
bool is_npz(const fs::path& path) { return form_of(path) == FileForm::npz; }
bool is_hdf5(const fs::path& path) { return form_of(path) == FileForm::hdf5; }
bool is_safetensors(const fs::path& path) { return form_of(path) == FileForm::safetensors; }

// A form that is told by more than the first bytes stands before those that would take the same file.
constexpr SourceForm forms[] = {
    {"zarr", "arrays of a Zarr store", is_zarr, open_zarr},
    {"picture-pairs", "pictures with a mask each, in a folder", holds_pairs, open_picture_pairs},
    {"class-folder", "a folder of pictures per class", holds_classes, open_class_folder},
    {"picture-folder", "a folder of pictures", holds_pictures, open_plain_pictures},
    {"picture-table", "a table of paths of pictures and labels", names_pictures, open_picture_table},
    {"picture", "a JPEG, PNG or WebP picture", is_one_picture, open_picture_file},
    {"frames", "frames of a detector: EDF, CBF or IMG", holds_frames, open_frames},
    {"nifti", "a volume of NIfTI", is_nifti, open_nifti},
    {"tiff", "pages of a TIFF", is_tiff_stack, open_tiff_stack},
    {"npy", "an array of NumPy", is_npy, open_npy_source},
    {"npz", "arrays of NumPy in a zip archive", is_npz, open_npz_source},
    {"hdf5", "data sets of an HDF5 file", is_hdf5, open_hdf5_source},
    {"parquet", "columns of a Parquet file", is_parquet, open_parquet},
    {"arrow", "columns of an Arrow or Feather file", is_arrow, open_arrow},
    {"lmdb", "values of an LMDB database", is_lmdb, open_lmdb_source},
    {"tar", "a web data set: samples in a tar archive", is_tar, open_tar_source},
    {"tfrecord", "TFRecord of tf.train.Example", is_tfrecord, open_tfrecord_source},
    {"json-lines", "an object of JSON a line", is_json_lines, open_json_lines},
    {"csv", "a table of text with a column an array", is_csv, open_csv_source},
    {"safetensors", "tensors of a safetensors file", is_safetensors, open_safetensors_source},
};

[[noreturn]] void refuse_form(const fs::path& path) {
  refuse_foreign_form(path);
  std::vector<std::string> names;
  for (const SourceForm& form : forms) names.emplace_back(form.name);
  std::error_code none;
  const bool folder = fs::is_directory(path, none);
  if (!folder) static_cast<void>(StableFile(path));  // that it cannot be opened is the better reason
  throw Error(ErrorCode::bad_file,
              folder ? "this is a folder, and no file in it can be read as samples"
                     : fmt::format("this is {}, not a file of arrays or samples", name_of(form_of(path))),
              path.string(),
              fmt::format("read are: {}{}", fmt::join(names, ", "),
                          folder || form_of(path) == FileForm::text
                              ? "; texts of gpt2, llama and bert-base-squad with --tokenizer FILE"
                              : ""));
}

// The files of a folder that is no form itself: those that a form takes, by their names. Hidden ones are not
// looked at.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!entry.path().filename().string().starts_with('.') && entry.is_regular_file() &&
        form_for(entry.path()))
      files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.empty()) refuse_form(folder);
  return files;
}

// Several files are one behind the other.
std::unique_ptr<SampleSource> open_files(const fs::path& given, const SourceRequest& request) {
  std::vector<std::unique_ptr<SampleSource>> parts;
  std::vector<std::string> files;
  const auto open = [&](const fs::path& file, const SourceForm& form) {
    parts.push_back(form.open(file, request));
    files.push_back(file.string());
  };
  std::error_code none;
  for (const fs::path& path : named_paths(given)) {
    if (const SourceForm* form = form_for(path))
      open(path, *form);
    else if (!fs::is_directory(path, none))
      refuse_form(path);
    else
      for (const fs::path& file : files_in(path)) open(file, *form_for(file));
  }
  return joined_sources(std::move(parts), std::move(files));
}

}  // namespace

std::span<const SourceForm> source_forms() { return forms; }

const SourceForm* form_for(const fs::path& path) {
  const auto found = std::ranges::find_if(forms, [&](const SourceForm& form) { return form.takes(path); });
  return found == std::end(forms) ? nullptr : found;
}

std::unique_ptr<SampleSource> open_source(const fs::path& given, const SourceRequest& request) {
  const std::vector<NamedArray> named = named_arrays(given);
  std::unique_ptr<SampleSource> source =
      named.empty() ? open_files(given, request) : open_named(named, request, open_files);
  if (!request.unnamed.empty()) source = named_as(std::move(source), request.unnamed);
  return scaled_source(std::move(source), request.scalings);
}

bool has_array(const fs::path& given, std::string_view name) {
  const std::unique_ptr<SampleSource> source = open_source(given);
  return find_array(*source, name) < source->arrays().size();
}

}  // namespace superstep::data
