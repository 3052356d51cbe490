// Files of trained weights as their makers write them: safetensors, alone or in shards, PyTorch's .bin and
// .pth, GGUF. Arrays are read where they lie, when somebody asks for them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/weights/weight.h"

namespace superstep::data {

class WeightFile {
 public:
  // A file; a folder with model.safetensors[.index.json], pytorch_model.bin[.index.json] or a single .gguf
  // in it; or such an index, whose shards lie beside it. Throws Error: not_found (also of a shard, with the
  // arrays that it should hold), bad_file, unsupported, io.
  static WeightFile open(const std::filesystem::path& path);

  const std::vector<Weight>& weights() const { return weights_; }  // sorted by name
  const Weight* find(std::string_view name) const;                 // null: there is none
  const WeightNotes& notes() const { return notes_; }
  const std::filesystem::path& path() const {
    return path_;
  }                                               // of what was opened: the index, not the folder
  std::string format() const { return format_; }  // "safetensors", "GGUF", "PyTorch"
  std::size_t files() const { return files_; }    // shards

 private:
  void add_file(const std::filesystem::path& path);
  void add_shards(const std::filesystem::path& index);

  std::filesystem::path path_;
  std::string format_;
  std::size_t files_ = 0;
  std::vector<Weight> weights_;
  WeightNotes notes_;
};

// Whether `show` and others may take a file of this name for weights: .safetensors, .gguf, .bin, .pt, .pth,
// an index of shards.
bool is_named_as_weights(const std::filesystem::path& path);
// Whether WeightFile::open() would find something in this folder.
bool holds_weights(const std::filesystem::path& folder);

}  // namespace superstep::data
