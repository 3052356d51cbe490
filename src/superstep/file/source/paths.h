// What a user names as data: a file, a folder, a pattern of names, several of them, or a list in a file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace superstep::data {

// `given` is one of these, looked at in this order; what they name may be such again, to a few levels:
//   a file or folder of this very name
//   @LIST                    a text file with a name a line, relative to its folder; # begins a comment
//   shard-{000..127}.h5      the numbers between, as wide as they are written
//   {a.h5,b.h5}              each of them
//   scans/2024-*.h5          names that fit: * any letters, ? one, [ab] one of these; sorted by name
// The files and folders, in this order. Throws Error (not_found) naming what is not there, or the pattern
// that nothing fits. Of named arrays (below) the files that they are read from, each once.
std::vector<std::filesystem::path> named_paths(const std::filesystem::path& given);

// An array that is read under a name of the reader's own: "x=scan.nxs:/entry/data/data".
struct NamedArray {
  std::string name;            // "": none is given
  std::filesystem::path path;  // what named_paths() takes
  std::string array;           // of what is there; "": the one that is meant
};

// `given` as such arrays, with commas between: NAME=PATH or NAME=PATH:ARRAY, or one PATH:ARRAY. Empty: it
// names files alone, as what is there by this very name does. Of several colons the first counts that has
// something in front of it that is there. Throws Error (invalid_argument) where a name is given twice.
std::vector<NamedArray> named_arrays(const std::filesystem::path& given);

// Whether all of what it names is there.
bool are_there(const std::filesystem::path& given);

// Several names, or several named arrays, as one that is taken apart again here. Throws Error
// (invalid_argument) for a name that braces cannot hold: it goes into a list.
std::filesystem::path joined_names(std::span<const std::string> names);

}  // namespace superstep::data
