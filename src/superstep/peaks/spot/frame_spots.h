// The spots of one frame: regions of pixels above the threshold, what they sum to, and the patches around
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/peaks/image/level.h"
#include "superstep/peaks/image/runs.h"
#include "superstep/peaks/image/watershed.h"

namespace superstep::peaks {

// What is to be known of a spot beside its numbers; they may be several.
enum SpotFlag : std::uint16_t {
  at_edge = 1,       // its patch reaches beyond the frame: what lies there is taken as the background
  has_gaps = 2,      // pixels of its patch have no data: they are the mean of their neighbors that have
  overlaps = 4,      // it was parted from others of the same connected component
  cut_by_scan = 8,   // it is in the first or the last frame: part of it may not have been measured
  not_located = 16,  // the method gave no place within the patch: it is the centroid
};

struct FoundSpot {
  std::int64_t frame = 0;
  std::int32_t row = 0, column = 0;  // of its highest pixel
  float maximum = 0;                 // above the background
  double intensity = 0;              // the sum of its pixels above the background
  std::int32_t pixels = 0;
  std::uint16_t flags = 0;
  // Standard deviation of the centroid of its pixels by counting alone, where values are counts of photons:
  // sqrt(sum of (x - mean)^2 times the counts) / intensity. Nothing of threshold, model or detector is in it.
  double row_sigma = 0, column_sigma = 0;  // px
  double found_row = 0, found_column = 0;  // px, in the frame: as the method says
};

struct FindSettings {
  Threshold threshold;
  std::int32_t least_pixels = 3;
  // How far a spot's highest pixel is above its surroundings, in standard deviations of those: the median of
  // the rim of its patch. Else the tail of a bright spot, which crosses the threshold far from it, is many
  // spots.
  double contrast = 5;
  bool part = true;     // overlapping spots, by watershed
  double valley = 0.1;  // Parting::valley
  int patch = 11;       // px
  bool clean = false;   // patches hold nothing but the spot's own pixels: others are 0
};

// A frame's spots in the order of their regions, and their patches: patch x patch pixels around the highest
// one, row-major, in corrected counts. Pixels of other spots and beyond the frame are the background.
struct FrameSpots {
  std::int64_t frame = 0;
  Level level;
  double threshold = 0;
  std::vector<FoundSpot> spots;
  std::vector<PixelRun>
      runs;  // by rows, then columns; labels are positions in `spots`, -1 of what was too small
  std::vector<float> patches;
};

// Finds them; one for each thread.
class SpotFinder {
 public:
  explicit SpotFinder(const FindSettings& settings) : settings_(settings) {}

  // Throws what level_of() and find_runs() throw.
  FrameSpots find(const Frame& frame, std::int64_t number);

 private:
  void sum_up(const Frame& frame, FrameSpots& found, int regions,
              const std::vector<std::int32_t>& component) const;

  FindSettings settings_;
  Watershed watershed_;
  Runs runs_;
};

// The first row and column of the patch around a spot.
inline std::int32_t patch_begin(std::int32_t middle, int size) { return middle - size / 2; }

}  // namespace superstep::peaks
