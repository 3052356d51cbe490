// Somebody who sees the frames of a stream go by, beside the model.
#pragma once

#include <span>
#include <string>

#include "superstep/edge/stream/frame.h"

namespace superstep::edge {

class FrameListener {
 public:
  virtual ~FrameListener() = default;
  // A frame that the model is asked about, once each; its pixels as f32, one after another. By the thread
  // that receives: to be quick.
  virtual void on_frame(const Frame& frame, std::span<const float> pixels) = 0;
  // The series is over, and all its frames have answers.
  virtual void on_end(const std::string& series) = 0;
};

}  // namespace superstep::edge
