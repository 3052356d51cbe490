#include "superstep/run/user/arrays.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/safetensors.h"

namespace superstep::run {
namespace {

enum class Format { npy, npz, hdf5, safetensors };

Format format_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".npy") return Format::npy;
  if (ending == ".npz") return Format::npz;
  if (ending == ".h5" || ending == ".hdf5") return Format::hdf5;
  if (ending == ".safetensors") return Format::safetensors;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not an ending for arrays", ending),
              path.string(), "use .npy, .npz, .h5 or .safetensors");
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

void check_array_file(const std::filesystem::path& path, std::size_t arrays) {
  if (format_of(path) == Format::npy && arrays != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("an .npy file holds one array, not {}", arrays),
                path.string(), "use .npz or .h5");
}

void write_arrays(const std::filesystem::path& path, const NamedTensors& arrays) {
  check_array_file(path, arrays.size());
  switch (format_of(path)) {
    case Format::npy: return data::write_npy(path, for_numpy(arrays.begin()->second));
    case Format::npz: return data::write_npz(path, for_numpy(arrays));
    case Format::hdf5: return write_hdf5(path, arrays);
    case Format::safetensors: return data::write_safetensors(path, {.tensors = arrays, .metadata = {}});
  }
}

}  // namespace superstep::run
