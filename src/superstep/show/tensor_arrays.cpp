#include "superstep/show/tensor_arrays.h"

#include <cstring>
#include <utility>

namespace superstep::show {
namespace {

// Copies a block row by row: rows are what is contiguous, the innermost axis.
struct BlockCopy {
  const Tensor& from;
  std::span<const std::int64_t> first, count;
  std::vector<std::int64_t> strides;
  std::byte* to;

  void copy(std::size_t axis, std::int64_t offset) {
    const std::size_t size = size_in_bytes(from.type());
    if (axis + 1 == count.size()) {
      const std::size_t bytes = static_cast<std::size_t>(count[axis]) * size;
      std::memcpy(to, from.bytes() + static_cast<std::size_t>(offset + first[axis]) * size, bytes);
      to += bytes;
      return;
    }
    for (std::int64_t i = 0; i < count[axis]; ++i) copy(axis + 1, offset + (first[axis] + i) * strides[axis]);
  }
};

}  // namespace

Tensor block_of(const Tensor& tensor, ElementType type, std::span<const std::int64_t> first,
                std::span<const std::int64_t> count) {
  if (tensor.shape().rank() == 0) return tensor.converted(type);
  Tensor block(tensor.type(), Shape(std::vector<std::int64_t>(count.begin(), count.end())));
  BlockCopy{tensor, first, count, tensor.shape().row_major_strides(), block.bytes()}.copy(0, 0);
  return block.converted(type);
}

TensorArrays::TensorArrays(std::map<std::string, Tensor> tensors,
                           std::map<std::string, std::string> attributes)
    : tensors_(std::move(tensors)), attributes_(std::move(attributes)) {}

std::vector<data::DataSetInfo> TensorArrays::data_sets() const {
  std::vector<data::DataSetInfo> infos;
  for (const auto& [name, tensor] : tensors_)
    infos.push_back({name, tensor.shape(), tensor.type(), name_of(tensor.type()), false});
  return infos;
}

Tensor TensorArrays::read_block(const data::DataSetInfo& info, ElementType type,
                                std::span<const std::int64_t> first,
                                std::span<const std::int64_t> count) const {
  return block_of(tensors_.at(info.name), type, first, count);
}

std::vector<std::string> TensorArrays::read_strings(const data::DataSetInfo&) const { return {}; }

std::map<std::string, data::Attribute> TensorArrays::attributes(const std::string& name) const {
  std::map<std::string, data::Attribute> found;
  if (name.empty()) found.insert(attributes_.begin(), attributes_.end());
  return found;
}

}  // namespace superstep::show
