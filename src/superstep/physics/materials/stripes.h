// Electron micrographs of a two-phase section with the vertical stripes ("curtains") that a focused ion beam
// leaves on it: grey level per phase, texture, stripes and noise, 8 bits a pixel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/physics/materials/microstructure.h"

namespace superstep::data {

// A stripe adds `amplitude` (a share of the grey range, negative for dark ones) times a Gaussian across it,
// slowly modulated along it.
struct Stripe {
  double centre_px = 0, width_px = 0, amplitude = 0;
};
inline constexpr int max_stripes = 20;

struct Micrograph {
  std::vector<std::uint8_t> pixels;     // [size, size]
  std::vector<Stripe> stripes;          // 5 to 20, width 1 to 4 px, amplitude 5 to 25 %
  double conductor = 0, insulator = 0;  // grey levels, 0 to 1; the conductor is the darker phase
  double texture = 0, noise = 0;        // standard deviations, of the same range
};

// Stores the stripes of a picture as a field of shape [max_stripes, 3], f32.
void put_stripes(std::byte* memory, const Micrograph& picture);

// A function of the stream and the section.
Micrograph draw_micrograph(RandomStream& random, const Microstructure& section);

}  // namespace superstep::data
