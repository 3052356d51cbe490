// Frames of a detector, one behind the other, of any form of file that samples are read from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "superstep/file/source/sample_source.h"

namespace superstep::peaks {

class FrameStack {
 public:
  // The array of frames [N,H,W], [N,1,H,W] or one frame [H,W]: the only one of its kind, or the one called
  // "frames" or "data"; NAME=PATH:ARRAY chooses another. Throws Error (bad_file, unsupported, not_found).
  explicit FrameStack(const std::filesystem::path& path);

  std::int64_t frames() const { return frames_; }
  int height() const { return height_; }
  int width() const { return width_; }
  ElementType type() const { return type_; }
  std::size_t frame_bytes() const {
    return static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_) * size_in_bytes(type_);
  }
  const std::string& where() const { return where_; }  // the file and the array, for errors
  std::vector<std::string> notes() const { return source_->notes(); }

  // frame_bytes() of one frame. Thread-safe.
  void read(std::int64_t frame, std::byte* to) const;

 private:
  std::unique_ptr<data::SampleSource> source_;
  std::size_t array_ = 0;
  bool single_ = false;  // the rows of the array are the rows of the only frame
  std::int64_t frames_ = 0;
  int height_ = 0, width_ = 0;
  ElementType type_ = ElementType::f32;
  std::string where_;
};

}  // namespace superstep::peaks
