// What happens to a detector image between the file and the network: crop, clean, scale.
#pragma once

#include <cstdint>
#include <span>

namespace superstep::data {

// Copies the size x size window whose first pixel is (first_column, first_row) of a row-major image;
// pixels outside the image are zero.
void crop(std::span<const float> image, int width, int height, int first_column, int first_row, int size,
          std::span<float> patch);

// Sets to zero what does not belong to the connected component (pixels > 0, 8 neighbours) whose maximum is
// nearest to the middle of the patch.
void keep_central_component(std::span<float> patch, int size);

// Linearly to [0, 1], smallest to largest value; a constant patch becomes 0.
void scale_to_unit(std::span<float> patch);

// Where the window of an odd `size` around a position begins: truncate(position) - size / 2.
int crop_origin(double position, int size);

}  // namespace superstep::data
