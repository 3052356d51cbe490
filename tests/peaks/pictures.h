// Frames for the tests: drawn by hand, with noise, and with peaks whose places are known.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/peaks/image/correction.h"

namespace superstep::peaks {

struct Picture {
  int height = 0, width = 0;
  std::vector<float> values;

  Picture(int h, int w, float value = 0)
      : height(h), width(w), values(static_cast<std::size_t>(h) * static_cast<std::size_t>(w), value) {}
  float& at(int row, int column) {
    return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(column)];
  }
  void add_gaussian(double row, double column, double amplitude, double sigma) {
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < width; ++c)
        at(r, c) += static_cast<float>(
            amplitude *
            std::exp(-0.5 * ((r - row) * (r - row) + (c - column) * (c - column)) / (sigma * sigma)));
  }
  void count_photons(std::uint64_t seed) {
    RandomStream random(seed);
    for (float& value : values) value = static_cast<float>(random.poisson(double{value}));
  }
  Correction plain() const { return {.height = height, .width = width}; }
  Frame frame(const Correction& correction) const {
    return {ElementType::f32, reinterpret_cast<const std::byte*>(values.data()), correction};
  }
};

}  // namespace superstep::peaks
