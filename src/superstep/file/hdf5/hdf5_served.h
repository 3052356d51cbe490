// Inside of the HDF5 layer: the child process that reads a file in place of this one, and what is asked of
// it.
//
// Damaged files crash the HDF5 library (1.10.8: heaps of variable-length values, object headers) or keep it
// busy for ever. A check beforehand would not do: what is read beyond the end of a block depends on what lies
// there. So no file is ever opened for reading in the process of the user: a child does, from the first byte
// to the last, and what becomes of it is an Error here.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "superstep/base/system/guarded_child.h"
#include "superstep/base/system/message.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::data::hdf5 {

enum class Request : std::uint8_t {
  open,
  data_sets,
  contains,
  info,
  read,
  read_rows,
  read_block,
  place_of,
  read_strings,
  attributes,
  frame_keys,
  frame_rows,
  frame_read,
};

class ServedFile {
 public:
  explicit ServedFile(const std::filesystem::path& path);  // throws what opening the file throws

  const std::filesystem::path& path() const { return path_; }
  // The child's answer. Throws the Error that the child met, or bad_file when it did not survive the request;
  // nothing more is asked about the file then.
  ChildAnswer ask(MessageWriter request) const;

 private:
  void start() const;
  std::expected<ChildAnswer, std::string> answer_to(std::string_view request) const;

  std::filesystem::path path_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<GuardedChild> child_;
  mutable std::string end_;  // how the child ended
};

// The tensor of an answer, which keeps the memory of its block.
void put_tensor_head(MessageWriter& message, const Tensor& tensor);
Tensor get_tensor(MessageReader& message, const SharedBlock& block);

// What the child does with a request. Throws nothing.
GuardedChild::Serve answers_about(const std::filesystem::path& path);

}  // namespace superstep::data::hdf5
