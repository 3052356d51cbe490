// Named tensors in memory as a file of arrays: what npy, npz and safetensors files become.
#pragma once

#include <map>
#include <string>

#include "superstep/show/array_file.h"

namespace superstep::show {

class TensorArrays : public ArrayFile {
 public:
  explicit TensorArrays(std::map<std::string, Tensor> tensors,
                        std::map<std::string, std::string> attributes = {});

  std::vector<data::DataSetInfo> data_sets() const override;
  Tensor read_block(const data::DataSetInfo& info, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const override;
  std::vector<std::string> read_strings(const data::DataSetInfo& info) const override;  // there are none
  std::map<std::string, data::Attribute> attributes(const std::string& name) const override;

 private:
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> attributes_;
};

// The block of a tensor, or of elements of the type `held` in memory, converted to `type`. The block must lie
// inside.
Tensor block_of(const Tensor& tensor, ElementType type, std::span<const std::int64_t> first,
                std::span<const std::int64_t> count);
Tensor block_of(const std::byte* from, ElementType held, const Shape& shape, ElementType type,
                std::span<const std::int64_t> first, std::span<const std::int64_t> count);

}  // namespace superstep::show
