// Reflections: spots of neighboring frames as one, with their means over omega.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/peaks/spot/frame_spots.h"

namespace superstep::peaks {

struct Reflection {
  double row = 0, column = 0,
         frame = 0;  // means over its frames, weighted by intensity; px, frames from 0 on
  double row_sigma = 0, column_sigma = 0;  // px, of those means by counting alone (FoundSpot)
  double frame_width = 0;                  // standard deviation of its intensity over frames
  std::int64_t first_frame = 0, last_frame = 0;
  std::int64_t spots = 0, pixels = 0;
  double intensity = 0;
  float maximum = 0;
  std::uint16_t flags = 0;  // of any of its spots
};

struct Reflections {
  std::vector<Reflection> reflections;
  std::vector<std::int64_t> of_spot;  // by spot: the position of its reflection
};

// `group` numbers what SpotLinker has linked. With `valley` above 0 those with one spot a frame are cut where
// parts_over_frames() says.
Reflections merged(std::span<const FoundSpot> spots, std::span<const std::int64_t> group, double valley);

}  // namespace superstep::peaks
