#include "superstep/baseline/xray/frame_file.h"

#include <fmt/format.h>

namespace superstep::baseline {

FrameFile::FrameFile(const std::filesystem::path& path) : file_(path) {
  for (const char* name : {"entry_1/data_1/data", "entry/data/data", "diff", "frame"})
    if (file_.contains(name)) name_ = name;
  if (name_.empty())
    throw Error(ErrorCode::bad_file,
                "no frames: no data set frame or diff or entry/data/data or entry_1/data_1/data",
                path.string());
  const std::int64_t any[] = {-1, -1, -1};
  const Shape shape = file_.require_shape(name_, any).shape;
  frames_ = shape[0];
  height_ = shape[1];
  width_ = shape[2];
  if (shape.element_count() == 0 || pixels() > (std::int64_t{1} << 28))
    throw Error(ErrorCode::bad_file, fmt::format("frames of shape {} cannot be worked on", to_string(shape)),
                fmt::format("{}: data set '{}'", path.string(), name_));
}

}  // namespace superstep::baseline
