#include "superstep/show/open_array_file.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "superstep/base/system/regular_file.h"
#include "superstep/file/foreign_forms.h"
#include "superstep/file/form.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/tiff.h"
#include "superstep/show/model_file.h"
#include "superstep/show/sample_arrays.h"
#include "superstep/show/tensor_arrays.h"
#include "superstep/show/weight_arrays.h"

namespace superstep::show {
namespace {

class Hdf5Arrays : public ArrayFile {
 public:
  explicit Hdf5Arrays(const std::filesystem::path& path) : file_(path) {}

  std::vector<data::DataSetInfo> data_sets() const override { return file_.data_sets(); }

  Tensor read_block(const data::DataSetInfo& info, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const override {
    return file_.read_block(info.name, type, first, count);
  }

  std::vector<std::string> read_strings(const data::DataSetInfo& info) const override {
    return file_.read_strings(info.name);
  }

  std::map<std::string, data::Attribute> attributes(const std::string& name) const override {
    return file_.attributes(name);
  }

 private:
  data::Hdf5File file_;
};

std::string first_bytes(const std::filesystem::path& path) {
  char bytes[6] = {};
  open_regular_file(path).read(bytes, sizeof bytes);
  return {bytes, sizeof bytes};
}

}  // namespace

// What is neither of the others is left to the HDF5 library, which refuses with a reason.
std::unique_ptr<ArrayFile> open_array_file(const std::filesystem::path& path,
                                           const data::SourceRequest& request) {
  if (!request.scalings.empty() || is_shown_as_samples(path)) return open_sample_arrays(path, request);
  if (std::filesystem::is_directory(path) && is_shown_as_weights(path)) return open_weight_arrays(path);
  const std::string magic = first_bytes(path);
  if (magic == "\x93NUMPY")
    return std::make_unique<TensorArrays>(
        std::map<std::string, Tensor>{{path.stem().string(), data::read_npy(path)}});
  if (magic.starts_with("PK") && is_shown_as_model(path)) return open_model_parameters(path);
  if (magic.starts_with("GGUF") || is_shown_as_weights(path)) return open_weight_arrays(path);
  if (magic.starts_with("PK")) return std::make_unique<TensorArrays>(data::read_npz(path));
  if (data::form_of(path) == data::FileForm::tiff)
    return std::make_unique<TensorArrays>(
        std::map<std::string, Tensor>{{path.stem().string(), data::read_tiff(path)}});
  if (data::form_of(path) == data::FileForm::safetensors) return open_weight_arrays(path);
  if (is_shown_as_model(path)) return open_model_parameters(path);
  data::refuse_foreign_form(path);
  return std::make_unique<Hdf5Arrays>(path);
}

}  // namespace superstep::show
