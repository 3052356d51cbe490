// Stacks of detector frames in HDF5 files.
#pragma once

#include <filesystem>
#include <string>

#include "superstep/file/source/array_file.h"

namespace superstep::baseline {

// The first of the data sets `frame`, `diff`, entry/data/data and entry_1/data_1/data: [frames, height,
// width]. Throws Error (bad_file) that names file and data set.
class FrameFile {
 public:
  explicit FrameFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t frames() const { return frames_; }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t pixels() const { return height_ * width_; }
  // Thread-safe.
  Tensor read(ElementType type, std::int64_t first, std::int64_t count) const {
    return file_.read_rows(name_, type, first, count);
  }

 private:
  data::ArrayFile file_;
  std::string name_;
  std::int64_t frames_ = 0, height_ = 0, width_ = 0;
};

}  // namespace superstep::baseline
