// Arrays of Zarr, version 2 (zarr-specs.readthedocs.io, v2) and 3 (v3 core): what their metadata say.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/file/zarr/codecs.h"

namespace superstep::data::zarr {

struct Array {
  std::string name;  // its path below the store
  std::filesystem::path folder;
  ElementType type = ElementType::f32;
  Shape shape, chunk;
  bool swapped = false;
  double fill = 0;            // of chunks that are not there
  std::vector<Codec> codecs;  // as they were applied
  std::string prefix;         // of the names of chunks: "c/"
  char separator = '.';       // in them

  std::string where() const;
  std::filesystem::path chunk_path(const std::vector<std::int64_t>& numbers) const;
};

// Whether a folder is a store.
bool is_store(const std::filesystem::path& folder);

// All arrays of a store, by their names; what is not read is in `others` with the reason ("'x' (its order is
// by columns)"). Throws Error (bad_file) naming a file of metadata that is none.
std::vector<Array> arrays_of(const std::filesystem::path& store, std::vector<std::string>& others);

}  // namespace superstep::data::zarr
