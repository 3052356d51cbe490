#include "superstep/show/tensor_arrays.h"

#include <cstring>
#include <utility>

namespace superstep::show {
namespace {

// Copies a block row by row: rows are what is contiguous, the innermost axis.
struct BlockCopy {
  const std::byte* from;
  std::size_t size;  // of an element
  std::span<const std::int64_t> first, count;
  std::vector<std::int64_t> strides;
  std::byte* to;

  void copy(std::size_t axis, std::int64_t offset) {
    if (axis + 1 == count.size()) {
      const std::size_t bytes = static_cast<std::size_t>(count[axis]) * size;
      std::memcpy(to, from + static_cast<std::size_t>(offset + first[axis]) * size, bytes);
      to += bytes;
      return;
    }
    for (std::int64_t i = 0; i < count[axis]; ++i) copy(axis + 1, offset + (first[axis] + i) * strides[axis]);
  }
};

}  // namespace

Tensor block_of(const std::byte* from, ElementType held, const Shape& shape, ElementType type,
                std::span<const std::int64_t> first, std::span<const std::int64_t> count) {
  Tensor block(held, Shape(std::vector<std::int64_t>(count.begin(), count.end())));
  if (shape.rank() == 0)
    std::memcpy(block.bytes(), from, size_in_bytes(held));
  else if (block.element_count() > 0)
    BlockCopy{from, size_in_bytes(held), first, count, shape.row_major_strides(), block.bytes()}.copy(0, 0);
  return block.converted(type);
}

Tensor block_of(const Tensor& tensor, ElementType type, std::span<const std::int64_t> first,
                std::span<const std::int64_t> count) {
  return block_of(tensor.bytes(), tensor.type(), tensor.shape(), type, first, count);
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
