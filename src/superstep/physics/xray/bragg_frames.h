// Whole detector frames with Bragg peaks, and the table of the peaks in them.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/physics/generator.h"
#include "superstep/physics/xray/bragg_model.h"

namespace superstep::data {

struct BraggFrameSettings {
  int height = 2048, width = 2048;
  double peaks_per_frame = 54;  // mean of a Poisson number; their centres are uniform over the frame
  BraggRanges ranges;
  BraggDetector detector{.threshold = 20};
  // Above 0 frames are those of a turning sample: every reflection is seen in several, its intensity over
  // them a Gaussian of this standard deviation, and `peaks_per_frame` is how many have their maximum in a
  // frame.
  double rocking = 0;  // frames
  double dead = 0;     // share of pixels that read 0 in all frames
};

// A reflection of a turning sample.
struct BraggReflection {
  BraggPeak peak;    // in the coordinates of the frame, as it is at its maximum
  double frame = 0;  // of its maximum, a fraction: frame i is from i - 0.5 to i + 0.5
};

// A line of the table of peaks.
struct BraggTableRow {
  BraggPeak peak;           // in the coordinates of the frame
  std::uint16_t peaks = 0;  // whose centres lie in the same connected component; 0: below the threshold
  float deviation = -1;     // px from the centre to the brightest pixel of that component; -1: there is none
};

struct BraggFrame {
  double background = 0;  // counts a pixel
  std::vector<std::uint16_t> counts;
  std::vector<BraggTableRow> table;
};

// Here a sample is a frame. The file has `frames` [F,H,W] and, with an entry a peak in the order of the
// frames, `peak_row`, `peak_col` (px, of the true centre), `peak_fidx` (the frame), `npeaks`, `deviations`,
// the parameters of the peaks, and `frame_background` [F]. Of a turning sample a peak has an entry for every
// frame in which it is drawn, with its amplitude there; the reflections themselves are `spot_row`,
// `spot_col`, `spot_frame` (a fraction) and `spot_amplitude`, those whose maximum is in one of the frames.
// With dead pixels `mask` [H,W] is 1 where they are.
class BraggFrameGenerator final : public Generator {
 public:
  explicit BraggFrameGenerator(const BraggFrameSettings& settings);

  std::string_view name() const override { return "braggnn"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override;
  nlohmann::json parameters() const override;
  void write(const WriteRequest& request) const override;

  BraggFrame frame(std::uint64_t seed, std::uint64_t index) const;
  // Those whose maximum is in this frame; a function of (seed, index) alone. None without a rocking curve.
  std::vector<BraggReflection> reflections(std::uint64_t seed, std::uint64_t index) const;
  std::vector<std::uint8_t> dead_pixels(std::uint64_t seed) const;  // 1: dead; empty: none

 private:
  void add_peaks(RandomStream& random, BraggFrame& frame, BraggImage& expected) const;
  void add_turning(std::uint64_t seed, std::uint64_t index, BraggFrame& frame, BraggImage& expected) const;
  void write_turning(Hdf5Writer& file, const WriteRequest& request) const;

  BraggFrameSettings settings_;
  std::vector<Field> fields_;
};

}  // namespace superstep::data
