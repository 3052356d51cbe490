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
// the parameters of the peaks, and `frame_background` [F].
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

 private:
  BraggFrameSettings settings_;
  std::vector<Field> fields_;
};

}  // namespace superstep::data
