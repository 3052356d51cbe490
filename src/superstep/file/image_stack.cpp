#include "superstep/file/image_stack.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/file/check.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/tiff.h"

namespace superstep::data {
namespace {

Tensor read_any(const std::filesystem::path& path, std::string_view data_set) {
  const FileForm form = form_of(path);
  if (form == FileForm::tiff || (form == FileForm::other && ends_in(path, {".tif", ".tiff"})))
    return read_tiff(path);
  if (form == FileForm::npy || (form == FileForm::other && ends_in(path, {".npy"}))) return read_npy(path);
  if (form != FileForm::hdf5 && form != FileForm::other)
    throw Error(ErrorCode::bad_file, fmt::format("this is {}, which holds no stack of images", name_of(form)),
                path.string(), "TIFF, npy and HDF5 are read");
  const Hdf5File file(path);
  return file.read(data_set, file.info(data_set).type.value_or(ElementType::f32));
}

// A single image may lack the axis of images.
Tensor with_image_axis(Tensor stack, int rank) {
  if (stack.shape().rank() != rank - 1) return stack;
  std::vector<std::int64_t> extents{1};
  extents.insert(extents.end(), stack.shape().begin(), stack.shape().end());
  return stack.reshaped(Shape(extents));
}

}  // namespace

Tensor read_image_stack(const std::filesystem::path& path, std::string_view data_set, bool channels) {
  const int rank = channels ? 4 : 3;
  Tensor stack = with_image_axis(read_any(path, data_set), rank);
  if (stack.shape().rank() != rank || stack.element_count() == 0)
    throw Error(ErrorCode::bad_file,
                fmt::format("has the shape {}; images are expected as [images, height, width{}]",
                            to_string(stack.shape()), channels ? ", channels" : ""),
                path.string());
  require_finite(stack, path.string());
  return stack;
}

}  // namespace superstep::data
