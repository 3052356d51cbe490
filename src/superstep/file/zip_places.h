// Where the entries of a zip archive lie in its file that are stored as they are, so that parts of them can
// be read without the rest.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "superstep/base/system/stable_file.h"

namespace superstep::data {

struct StoredEntry {
  std::uint64_t begin = 0, size = 0;  // bytes of the file
};

// By name. Entries that are packed, or whose place is not plain to see, are left out: zip.h reads them.
// Throws Error (io).
std::map<std::string, StoredEntry> stored_entries(const StableFile& file);

}  // namespace superstep::data
