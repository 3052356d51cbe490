// Spots that were found beside those that are known to be there: generated frames.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/peaks/find_peaks.h"

namespace superstep::peaks {

struct Place {
  double row = 0, column = 0, frame = 0;  // px, frames
  double amplitude = 0;                   // counts above the background at its center
};

struct Truth {
  std::vector<Place> places;
  bool turning = false;  // places are reflections, with fractions of frames; else spots of single frames
};

// What `superstep generate braggnn --set mode=frames` has written beside the frames; nothing of other files.
// Of a turning sample the reflections where `merged`, else its spots frame by frame.
std::optional<Truth> read_truth(const std::filesystem::path& frames, bool merged);

struct Score {
  std::size_t expected = 0, found = 0;  // true places above the threshold, and how many of these were found
  std::size_t given = 0,
              false_ones = 0;  // places that were found, and those near no true place of any height
  std::vector<double> isolated, overlapping;  // px: errors of those found, by whether another is near
  std::vector<double> frame_errors;           // frames: of reflections
};

struct ScoreSettings {
  double least_amplitude = 0;  // counts: what is lower is not expected
  double reach = 3;            // px: a place that is farther from a true one is another
  double frame_reach = 0.5;    // frames, in the same way
  double near = 8;             // px: true places closer than this overlap
};

// One to one, the nearest pairs first.
Score score(std::span<const Place> found, std::span<const Place> truth, const ScoreSettings& settings);

// Of the table's reflections. Names: found_share, false_share, error_px_mean, error_px_mean_isolated,
// error_px_mean_overlapping, frame_error_mean; nothing where the frames have no truth.
std::vector<Metric> score_metrics(const PeakTable& table, const PeaksSettings& settings);

}  // namespace superstep::peaks
