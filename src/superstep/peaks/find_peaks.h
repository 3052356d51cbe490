// From the frames of a detector to a table of reflections: corrected, above a threshold, parted, located in
// patches, merged over the frames in which each is seen.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/peaks/image/correction.h"
#include "superstep/peaks/reflections.h"
#include "superstep/peaks/spot/frame_spots.h"
#include "superstep/peaks/spot/locate.h"

namespace superstep::peaks {

// The rotation of the sample: frame i is taken from start + i step to start + (i + 1) step.
struct Omega {
  double start = 0, step = 1;  // degrees
  double at(double frame) const { return start + step * (frame + 0.5); }
};

struct PeaksSettings {
  std::filesystem::path frames;
  CorrectionFiles correction;
  FindSettings find;  // its patch is the locator's
  LocatorSettings locator;
  bool merge = true;  // over frames; false: every spot of a frame is one of its own
  std::optional<Omega> omega;
  int threads = 1;
};

struct PeakTable {
  std::vector<FoundSpot> spots;  // by frames
  Reflections merged;
  std::int64_t frames = 0;
  int height = 0, width = 0, patch = 0;
  double mean_threshold = 0, mean_background = 0;  // corrected counts, over the frames
  double seconds = 0;                              // from the first frame read to the last spot located
  double locate_seconds = 0;                       // of these, in the method
  std::vector<std::string> notes;                  // of the file
};

// Frames are taken in blocks, one a thread at a time; of their pixels no more are held than one frame for
// each thread, and patches of a block. The table is the same on any number of threads. Throws Error: what
// opening the files throws, what is wrong with a frame, with its number; interrupted.
PeakTable find_peaks(const PeaksSettings& settings);

}  // namespace superstep::peaks
