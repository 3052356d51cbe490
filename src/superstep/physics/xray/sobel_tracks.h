// Frames of a silicon pixel detector crossed by charged particles: what an edge filter next to the sensor
// gets to see.
#pragma once

#include "superstep/base/option_range.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

struct TrackSettings {
  int side = 800;          // px
  double pitch = 25;       // um, of the pixels
  double thickness = 100;  // um, of the sensor
  double tracks = 250;     // a frame, Poisson
  double clustered = 0.3;  // share of tracks that start within a few pixels of another
  double max_angle = 80;   // degrees from the normal; uniform in the direction's solid angle
  double diffusion = 4;    // um, width of the charge cloud at the electrodes
  double noise = 60;       // electrons, of a pixel
  double threshold = 300;  // electrons; below, a pixel is written as 0
  double electrons_per_count = 10;
};

// A straight track: where it enters (pixels), the direction it runs in, its length in the sensor's plane
// and the charge that it leaves.
struct Track {
  double y = 0, x = 0;    // px, at the surface
  double dy = 0, dx = 0;  // px, displacement from the entry to the exit
  double electrons = 0;
};

// Charge of a path of `micrometres` through silicon: a Moyal distribution, the closed form next to Landau's
// (J. Moyal, Phil. Mag. 46, 263, 1955): most probable 76 electrons a micrometre, fluctuations that grow
// more slowly than the path.
double draw_charge(RandomStream& random, double micrometres);

std::vector<Track> draw_tracks(RandomStream& random, const TrackSettings& settings);

// Electrons of every pixel, side x side: each track's charge is laid along its path in equal steps and
// shared among neighbouring pixels by the Gaussian cloud.
std::vector<float> collected_charge(const std::vector<Track>& tracks, const TrackSettings& settings);

class TrackGenerator : public Generator {
 public:
  static constexpr int most_tracks = 2048;  // stored with a frame

  explicit TrackGenerator(const TrackSettings& settings);
  std::string_view name() const override { return "sobel-800"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override;
  nlohmann::json parameters() const override;

 private:
  TrackSettings settings_;
  std::vector<Field> fields_;
};

GeneratorEntry sobel_generator();

}  // namespace superstep::data
