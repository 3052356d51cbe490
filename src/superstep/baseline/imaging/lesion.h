// Lesions in FLAIR volumes without training: bias correction, thresholds, region growing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::baseline {

// The brain of a FLAIR volume [slices, height, width]: voxels above Otsu's threshold of the volume, the
// largest connected part of them (the scalp is another), 0 and 1.
std::vector<std::uint8_t> extract_brain(std::span<const std::uint8_t> flair, int width, int height,
                                        int slices);

struct LesionSettings {
  int classes = 3;           // of grey levels inside the brain, 2 to 4
  bool correct_bias = true;  // see bias_field.h
  double growth = 0;         // deviations below the region's mean that it grows to; 0: it does not grow
};

// The brightest of Otsu's classes inside the brain, its largest connected part, grown or not.
std::vector<std::uint8_t> segment_lesion(std::span<const std::uint8_t> flair, int width, int height,
                                         int slices, const LesionSettings& settings);

// Grows a region through faces, inside `allowed`, to values not below its mean less `deviations` of its
// standard deviation; then again with the mean of what it has become, `rounds` times or until it stays.
std::vector<std::uint8_t> grow_region(std::span<const std::uint8_t> values,
                                      std::span<const std::uint8_t> allowed, std::vector<std::uint8_t> region,
                                      int width, int height, int depth, double deviations, int rounds);

}  // namespace superstep::baseline
