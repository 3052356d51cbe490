// The slowly varying gain of a magnetic resonance image, estimated from the image alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::baseline {

// The idea is N3's (J. Sled, A. Zijdenbos and A. Evans, IEEE Trans. Med. Imaging 17, 87 (1998)): a gain that
// varies blurs the histogram of the logarithms, and the smooth field that sharpens it again is the gain. The
// updates are N4's (N. Tustison et al., IEEE Trans. Med. Imaging 29, 1310 (2010)): cubic B-splines on meshes
// that become finer, each fitted to what the one before it left (S. Lee, G. Wolberg and S. Shin, IEEE Trans.
// Vis. Comput. Graph. 3, 228 (1997)).
struct BiasSettings {
  int levels = 3;           // meshes of 1, 2, 4 ... spans along each axis
  int iterations = 20;      // at most, on each mesh
  int stride = 4;           // every so many pixels of a slice are looked at
  double blur_fwhm = 0.15;  // of the Gaussian in log intensity that is taken out of the histogram
  double wiener_noise = 0.01;
  double tolerance = 1e-3;  // an update below it (root mean square, log intensity) ends a mesh
};

// The gain of every voxel of a [slices, height, width] volume, its logarithm of mean 0 over the voxels with
// a mask that is not 0 and an intensity above 0; 1 everywhere when there are fewer than a thousand of them.
std::vector<float> estimate_gain(std::span<const std::uint8_t> volume, std::span<const std::uint8_t> mask,
                                 int width, int height, int slices, const BiasSettings& settings);

// volume / gain, rounded, at most 255.
std::vector<std::uint8_t> without_gain(std::span<const std::uint8_t> volume, std::span<const float> gain);

}  // namespace superstep::baseline
