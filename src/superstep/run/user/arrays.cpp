#include "superstep/run/user/arrays.h"

#include <fmt/format.h>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/safetensors.h"

namespace superstep::run {
namespace {

enum class Format { npy, npz, hdf5, safetensors };

Format format_of_name(const std::filesystem::path& path) {
  if (data::ends_in(path, {".npy"})) return Format::npy;
  if (data::ends_in(path, {".npz"})) return Format::npz;
  if (data::ends_in(path, {".h5", ".hdf5"})) return Format::hdf5;
  if (data::ends_in(path, {".safetensors"})) return Format::safetensors;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is not an ending for arrays", path.extension().string()), path.string(),
              "use .npy, .npz, .h5 or .safetensors");
}

// What its bytes say; its name only where they do not.
Format format_of(const std::filesystem::path& path) {
  using data::FileForm;
  switch (const FileForm form = data::form_of(path)) {
    case FileForm::npy: return Format::npy;
    case FileForm::npz: return Format::npz;
    case FileForm::hdf5: return Format::hdf5;
    case FileForm::safetensors: return Format::safetensors;
    case FileForm::other: return format_of_name(path);
    default:
      throw Error(ErrorCode::bad_file, fmt::format("this is {}, not a file of arrays", data::name_of(form)),
                  path.string(), "npy, npz, HDF5 and safetensors are read");
  }
}

NamedTensors read_hdf5(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  NamedTensors arrays;
  for (const data::DataSetInfo& info : file.data_sets())
    if (info.type) arrays.emplace(info.name, file.read(info.name, *info.type));
  return arrays;
}

void write_hdf5(const std::filesystem::path& path, const NamedTensors& arrays) {
  data::Hdf5Writer file(path);
  for (const auto& [name, tensor] : arrays) file.write(name, tensor);
  file.close();
}

Tensor for_numpy(const Tensor& tensor) {
  return tensor.type() == ElementType::bf16 ? tensor.converted(ElementType::f32) : tensor;
}

NamedTensors for_numpy(const NamedTensors& arrays) {
  NamedTensors result;
  for (const auto& [name, tensor] : arrays) result.emplace(name, for_numpy(tensor));
  return result;
}

}  // namespace

NamedTensors read_arrays(const std::filesystem::path& path) {
  switch (format_of(path)) {
    case Format::npy: return {{"", data::read_npy(path)}};
    case Format::npz: return data::read_npz(path);
    case Format::hdf5: return read_hdf5(path);
    case Format::safetensors: return data::read_safetensors(path).tensors;
  }
  return {};
}

std::vector<std::string> other_arrays(const std::filesystem::path& path) {
  std::vector<std::string> others;
  if (data::form_of(path) == data::FileForm::safetensors)
    for (const auto& [name, type] : data::read_safetensors(path).unread)
      others.push_back(fmt::format("'{}' ({})", printable(name), type));
  if (data::form_of(path) != data::FileForm::hdf5) return others;
  for (const data::DataSetInfo& info : data::Hdf5File(path).data_sets())
    if (!info.type) others.push_back(fmt::format("'{}' ({})", printable(info.name), info.type_name));
  return others;
}

void check_array_file(const std::filesystem::path& path, std::size_t arrays) {
  if (format_of_name(path) == Format::npy && arrays != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("an .npy file holds one array, not {}", arrays),
                path.string(), "use .npz or .h5");
}

void write_arrays(const std::filesystem::path& path, const NamedTensors& arrays) {
  check_array_file(path, arrays.size());
  switch (format_of_name(path)) {
    case Format::npy: return data::write_npy(path, for_numpy(arrays.begin()->second));
    case Format::npz: return data::write_npz(path, for_numpy(arrays));
    case Format::hdf5: return write_hdf5(path, arrays);
    case Format::safetensors: return data::write_safetensors(path, {.tensors = arrays, .metadata = {}});
  }
}

}  // namespace superstep::run
