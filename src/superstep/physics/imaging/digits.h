// Handwriting-like digits: Bezier strokes, distorted and drawn like the images of the MNIST collection.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

inline constexpr int digit_size = 28;

struct Digit {
  int label = 0;
  double rotation = 0;                                         // rad, +-15 degrees
  double shear = 0;                                            // +-0.2
  double scale = 1;                                            // 0.8 to 1.2, of a glyph 17 px high
  double width_px = 3;                                         // of the pen, 2 to 4
  std::array<std::uint8_t, digit_size * digit_size> pixels{};  // 0 paper, 255 ink
};

// One digit; `label` is drawn from 0 to 9. A glyph larger than 20 px is made to fit 20 x 20; the centre of
// mass lies in the centre of the image, (14, 14) when pixel i covers [i, i + 1), to an eighth of a pixel.
Digit draw_digit(RandomStream& random);

}  // namespace superstep::data
