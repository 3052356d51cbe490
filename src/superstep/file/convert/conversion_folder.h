// The folder that a conversion works in, beside what it writes: one that was stopped is gone on with there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/system/folder_lock.h"

namespace superstep::data {

// How far a conversion is.
struct ConversionState {
  bool checking = false;             // all is written, and being read back
  std::size_t group = 0;             // of arrays
  std::int64_t row = 0;              // of the group, the next one
  std::vector<Sha256> sums;          // of what was read so far, an array each
  std::vector<std::string> written;  // their digests, where that is over
  std::string mark;                  // the writer's
};

class ConversionFolder {
 public:
  // `key`: what all of the conversion depends on. One that was left by a stopped call with the same key is
  // gone on with, and stays where this call stops, too; another one is taken away. Without a key nothing is
  // ever kept. Throws Error: io (it cannot be made, or another call works in it), invalid_argument (a folder
  // of this name is there, and no conversion's).
  ConversionFolder(const std::filesystem::path& out, const std::string& key);
  // Takes the folder away, unless it is kept.
  ~ConversionFolder();
  ConversionFolder(const ConversionFolder&) = delete;
  ConversionFolder& operator=(const ConversionFolder&) = delete;

  // Where the file, or folder, is written.
  std::filesystem::path data() const { return folder_ / "data"; }
  const std::filesystem::path& path() const { return folder_; }

  // What the stopped call saved last; nothing where this one begins.
  const std::optional<ConversionState>& left() const { return left_; }
  // Whether something of another conversion was there.
  bool began_again() const { return began_again_; }
  void begin_again();

  // To go on from, whenever this process ends. Nothing where there is no key.
  void save(const ConversionState& state) const;
  bool keeps() const { return !key_.empty(); }
  void drop() { kept_ = false; }  // it is of no more use

  // What was written has its name, and takes the place of what was there.
  void put_in_place() const;

 private:
  void clear() const;

  std::filesystem::path out_, folder_;
  std::string key_;
  std::optional<FolderLock> lock_;
  std::optional<ConversionState> left_;
  bool began_again_ = false, kept_ = false;
};

}  // namespace superstep::data
