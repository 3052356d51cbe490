// What a frame is where there are no spots: its level, how far pixels stray from it, and the threshold that
// follows.
#pragma once

#include <string>
#include <string_view>

#include "superstep/peaks/image/correction.h"

namespace superstep::peaks {

struct Level {
  double background = 0;  // the median
  double sigma = 0;  // from the median down to what 15.87 % of the pixels are below: spots do not widen it
};

// Of about 16,000 pixels in a fixed pattern. Whole counts are taken as spread evenly over one count, so that
// a level of few counts has a width. Throws Error (bad_file) where no pixel has data.
Level level_of(const Frame& frame);

// "100": corrected counts; "8sigma": so many sigma above the background of each frame.
struct Threshold {
  double value = 8;
  bool in_sigma = true;

  double above(const Level& level) const { return in_sigma ? level.background + value * level.sigma : value; }
};

// Throws Error (invalid_argument) naming --threshold.
Threshold threshold_from_text(std::string_view text);
std::string to_text(const Threshold& threshold);

}  // namespace superstep::peaks
