#include "superstep/file/convert/writer_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/file/form.h"

namespace superstep::data {
namespace {

std::string holds_all(const SourceArray&) { return {}; }

// NumPy has no type for it.
std::string no_bf16(const SourceArray& array) {
  return array.type == ElementType::bf16 ? "holds no bf16" : "";
}

// Lists of 32-bit floats, of whole numbers of 64 bits, of bytes.
std::string fits_example(const SourceArray& array) {
  return array.type == ElementType::f64 ? "holds floats of 32 bits, and these have 64" : "";
}

std::string fits_json(const SourceArray& array) {
  return array.row.element_count() == 0 && array.row.rank() > 1 ? "holds no lists of empty lists" : "";
}

// Lists of nothing have no shape.
std::string fits_parquet(const SourceArray& array) {
  if (array.row.element_count() == 0) return "holds no lists of nothing";
  return no_bf16(array);
}

// Names are folders in the store, whose own files begin with a point or are called zarr.json.
std::string fits_zarr(const SourceArray& array) {
  for (const std::filesystem::path& part : std::filesystem::path(array.name)) {
    const std::string name = part.string();
    if (name.empty() || name == "/" || name.starts_with('.') || name == "zarr.json")
      return "holds no arrays of such a name";
  }
  return no_bf16(array);
}

const std::vector<WriterForm>& table() {
  static const std::vector<WriterForm> forms = {
      {"hdf5", "HDF5", {".h5", ".hdf5", ".hdf", ".nxs"}, true, true, holds_all, open_hdf5_samples},
      {"npz", "arrays of NumPy in a zip archive", {".npz"}, true, true, no_bf16, open_npz_samples},
      {"tar", "a web data set", {".tar"}, false, true, no_bf16, open_tar_samples},
      {"tfrecord",
       "TFRecord of tf.train.Example",
       {".tfrecord", ".tfrecords"},
       false,
       false,
       fits_example,
       open_tfrecord_samples},
      {"parquet", "Parquet", {".parquet"}, false, true, fits_parquet, open_parquet_samples},
      {"json-lines",
       "an object of JSON a line",
       {".jsonl", ".ndjson"},
       false,
       true,
       fits_json,
       open_json_samples},
      {"zarr", "Zarr", {".zarr"}, true, true, fits_zarr, open_zarr3_samples, "zarr", true},
      {"zarr2", "Zarr, version 2", {}, true, true, fits_zarr, open_zarr2_samples, "zarr", true},
  };
  return forms;
}

std::string ending_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return ending;
}

}  // namespace

nlohmann::json read_mark(const WriterPlace& place) {
  nlohmann::json mark = parse_json(place.mark);
  if (!mark.is_object()) throw Error(ErrorCode::bad_file, "is not what was left to go on with", place.shown);
  return mark;
}

void SampleWriter::write_shared(std::size_t, const Tensor&) {
  throw Error(ErrorCode::internal, "this form holds samples alone");
}

std::span<const WriterForm> writer_forms() { return table(); }

const WriterForm& find_writer_form(std::string_view name, const std::filesystem::path& path) {
  const std::string ending = ending_of(path);
  std::vector<std::string> names, endings;
  for (const WriterForm& form : writer_forms()) {
    const bool fits =
        name.empty() ? std::ranges::find(form.endings, ending) != form.endings.end() : name == form.name;
    if (fits) return form;
    names.emplace_back(form.name);
    endings.insert(endings.end(), form.endings.begin(), form.endings.end());
  }
  if (!name.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no form '{}' to write", name), "",
                unknown_name_hint(name, names));
  throw Error(ErrorCode::invalid_argument, "its name does not say in which form it is to be written",
              path.string(), fmt::format("end it in {}, or name the form (--to)", join(endings, ", ")));
}

bool is_of_pictures(const SourceArray& array) {
  return array.type == ElementType::u8 && array.row.rank() == 3 && (array.row[0] == 1 || array.row[0] == 3) &&
         array.row[1] > 0 && array.row[2] > 0;
}

}  // namespace superstep::data
