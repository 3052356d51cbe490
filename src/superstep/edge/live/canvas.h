// One picture from many overlapping ones: every prediction of a window is added where the window lay.
//
// All sums are whole numbers (values times 2^24), so that the picture has the same bits for any order of the
// frames and any number of threads. It grows by tiles of 256 x 256 pixels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace superstep::edge {

struct StitchSettings {
  double pixel = 10e-9;    // m, of the picture
  std::int64_t crop = 12;  // px a side of a window's middle that is taken
  bool phase_mean = true;  // each window less its circular mean: a phase is known up to a constant
  std::string output;      // of the model, that is stitched; empty: its last
  std::size_t most_tiles = 64;
};
// "pixel=10nm,crop=12,mean=kept,output=phase". Throws Error (invalid_argument).
StitchSettings stitch_settings_from_text(const std::string& text);

// Where all of the pictures are that were added, and what they say; NaN where nothing lies.
struct StitchedPicture {
  std::int64_t top = 0, left = 0;  // px of the first pixel
  int height = 0, width = 0;
  std::vector<float> mean, spread, weight;  // spread: the standard deviation of what overlaps
};

class StitchCanvas {
 public:
  explicit StitchCanvas(StitchSettings settings) : settings_(std::move(settings)) {}

  // `window`: n x n values whose middle lies at `position` (y, x) in m. False: it would lie beyond the tiles
  // that are allowed, or has no finite value; nothing of it is added.
  bool add(std::span<const float> window, std::int64_t n, std::pair<double, double> position);
  StitchedPicture picture() const;
  std::uint64_t added() const { return added_; }
  const StitchSettings& settings() const { return settings_; }

 private:
  static constexpr std::int64_t side = 256;
  struct Cell {
    std::int64_t sum = 0, square = 0, weight = 0;
  };
  using Tile = std::vector<Cell>;
  using Place = std::pair<std::int64_t, std::int64_t>;
  struct Deposit {
    std::int64_t y, x;
    Cell cell;
  };
  std::vector<Deposit> deposits(std::span<const float> values, std::int64_t crop, double top,
                                double left) const;

  StitchSettings settings_;
  std::map<Place, Tile> tiles_;
  std::uint64_t added_ = 0;
};

}  // namespace superstep::edge
