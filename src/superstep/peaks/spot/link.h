// Spots of neighboring frames that are one reflection, crossing the Ewald sphere while the sample turns.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/peaks/image/union_find.h"
#include "superstep/peaks/spot/frame_spots.h"

namespace superstep::peaks {

// Frames are given in their order; of their pixels those of the last one are kept, as runs.
class SpotLinker {
 public:
  // `parts`: each spot goes on in at most one spot of the next frame, the one that it shares a maximum with:
  // the highest pixel of one lies among the pixels of the other, where there are several first that of the
  // later spot, then the higher one. Otherwise all spots that share a pixel are one: connected components
  // over frames.
  explicit SpotLinker(bool parts) : parts_(parts) {}

  // The frame after the last one.
  void add(const FrameSpots& now);
  // By spot, in the order of frames and of spots in them: the number of the reflection, from 0 on in the
  // order of their first spots.
  std::vector<std::int64_t> reflections();

 private:
  void link_by_maxima(const FrameSpots& now, std::int32_t first);
  void link_by_pixels(const FrameSpots& now, std::int32_t first);

  bool parts_;
  UnionFind sets_;
  FrameSpots last_;
  std::int32_t last_first_ = 0;  // the number of its first spot
};

// A reflection whose intensity over the frames has a valley is several: spots in the order of frames (one
// each) are cut at their least, where it lies by `valley` below the lower maximum beside it and by three
// times what counting moves their difference by. Returns where parts begin, 0 first.
std::vector<std::size_t> parts_over_frames(const std::vector<double>& intensity, double valley);

}  // namespace superstep::peaks
