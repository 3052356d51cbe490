// Histograms of oriented gradients (N. Dalal and B. Triggs, CVPR 2005): what an image looks like to a
// classifier that came before convolutional networks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::baseline {

struct HogSettings {
  int cell = 8;          // px along a side
  int orientations = 9;  // bins over half a turn: a gradient and its opposite count as one
};

// Values of an image of this size: blocks of 2 x 2 cells, each of its own and its neighbours' cells. Throws
// Error (invalid_argument) when fewer than 2 x 2 cells fit.
int hog_length(int width, int height, const HogSettings& settings);

// `planes`: [channels, height, width]. The gradient of a pixel is that of the channel where it is largest;
// its size is shared between the two nearest bins and the four nearest cells. Blocks are normalised to length
// 1, cut at 0.2 and normalised again; an image without gradients gives zeros. Pixels beyond the last whole
// cell are left out.
std::vector<float> hog_features(std::span<const std::uint8_t> planes, int width, int height,
                                const HogSettings& settings);

}  // namespace superstep::baseline
