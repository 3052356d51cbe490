// Detector frames to compress: the diffraction patterns of ptychographic scans, or laser-like speckle.
#pragma once

#include <memory>

#include "superstep/physics/xray/ptycho.h"

namespace superstep::data {

struct FramesSettings {
  enum class Source { diffraction, speckle } source = Source::diffraction;
  PtychoSettings diffraction;
  int side = 128;            // px
  Range photons{1e4, 1e7};   // a frame
  Range speckle_size{2, 8};  // px: side / diameter of the aperture
};

// `frame` f32 [side, side], counts. Fully developed speckle is the far field of a round aperture with a
// random phase at every point: intensities are exponentially distributed (J. Goodman, Speckle Phenomena in
// Optics), and counts are Poisson.
class FramesGenerator : public Generator {
 public:
  FramesGenerator(std::string name, const FramesSettings& settings);

  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override;
  nlohmann::json parameters() const override;

 private:
  std::string name_;
  FramesSettings settings_;
  PtychoGenerator diffraction_;
  std::vector<Field> fields_;
};

// Expected counts of a speckle pattern, n x n, summing to `photons`.
std::vector<float> speckle_intensity(RandomStream& random, int n, double speckle_size, double photons);

GeneratorEntry pca_compress_generator();

}  // namespace superstep::data
