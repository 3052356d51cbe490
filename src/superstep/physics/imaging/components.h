// Connected components of the positive pixels of an image (8 neighbours).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::data {

// Writes 0 for pixels that are not positive and 1, 2, ... for components in the order in which a scan by
// rows meets them. Returns how many there are. `stack` is memory to work in.
template <class T>
int label_components(std::span<const T> image, int width, int height, std::span<std::int32_t> labels,
                     std::vector<std::int32_t>& stack) {
  for (std::size_t i = 0; i < image.size(); ++i) labels[i] = image[i] > T{0} ? -1 : 0;
  int components = 0;
  for (std::int32_t start = 0; start < width * height; ++start) {
    if (labels[static_cast<std::size_t>(start)] >= 0) continue;
    labels[static_cast<std::size_t>(start)] = ++components;
    stack.assign(1, start);
    while (!stack.empty()) {
      const std::int32_t row = stack.back() / width, column = stack.back() % width;
      stack.pop_back();
      for (std::int32_t r = row - 1; r <= row + 1; ++r)
        for (std::int32_t c = column - 1; c <= column + 1; ++c) {
          if (r < 0 || r >= height || c < 0 || c >= width) continue;
          std::int32_t& label = labels[static_cast<std::size_t>(r * width + c)];
          if (label >= 0) continue;
          label = components;
          stack.push_back(r * width + c);
        }
    }
  }
  return components;
}

}  // namespace superstep::data
