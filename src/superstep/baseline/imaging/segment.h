// Segmentation without training: Otsu's thresholds, connected parts, overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::baseline {

// The classes - 1 grey levels that separate `values` into that many classes (2 to 4) with the largest
// variance between them (N. Otsu, IEEE Trans. SMC 9 (1979)): class k holds values above threshold k - 1 and
// up to threshold k. Values all alike give that value.
std::vector<int> otsu_thresholds(std::span<const std::uint8_t> values, int classes);

// The largest connected part (through faces) of the non-zero voxels of a [depth, height, width] volume, as 0
// and 1. Of equal parts the one found first; empty for an empty mask.
std::vector<std::uint8_t> largest_component(std::span<const std::uint8_t> mask, int width, int height,
                                            int depth);

// 2 |a and b| / (|a| + |b|) of the non-zero voxels; 1 when both are empty.
double dice(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

}  // namespace superstep::baseline
