// The elements of tensors in ONNX files: raw, in typed fields, sparse, or in files beside the model.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "superstep/base/system/mapped_file.h"
#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"
#include "superstep/onnx/wire/proto.h"

namespace superstep::onnx {

// Files with the elements of tensors, each mapped once. Thread-safe.
class ExternalData {
 public:
  // Files may lie in `folder` and below it; an empty folder refuses all.
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The bytes that a tensor's entries (location, offset, length) name, `size` of them. Throws Error
  // (bad_file) when they point outside the folder, by "..", an absolute path or a symbolic link, or beyond
  // the end of the file; (not_found).
  Bytes bytes(const TensorProto& tensor, std::size_t size) const;
  // The file that they lie in.
  const MappedFile& file_of(const TensorProto& tensor) const;

 private:
  const MappedFile& open(const std::string& location) const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<MappedFile>> files_;
};

// The type a tensor will have once read (see held_type), without its elements. Throws Error (bad_file,
// unsupported).
graph::ValueType tensor_type(const TensorProto& tensor);

// Throws Error (bad_file) when there are not as many elements as the shape says: nothing is allocated before
// that is checked.
Tensor read_tensor(const TensorProto& tensor, const ExternalData& external);
// The same, but that the elements of a large tensor stay in the file until somebody asks for them, or for a
// copy of them where they are wanted, which throws Error (io) where the file has changed by then. The tensor
// lies in `file`, or in one of `external`, which `file` keeps, too. Null: as read_tensor().
Tensor read_tensor_later(const TensorProto& tensor, const ExternalData& external,
                         const std::shared_ptr<const MappedFile>& file);
// Dense, with zeros where nothing is listed. At most `most_sparse_elements` in all.
Tensor read_sparse_tensor(const SparseTensorProto& tensor, const ExternalData& external);
inline constexpr std::int64_t most_sparse_elements = std::int64_t{1} << 26;

}  // namespace superstep::onnx
