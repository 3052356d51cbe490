// Families of procedural textures.
#pragma once

#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

enum class TextureFamily { waves, clouds, cells, spots };
inline constexpr int texture_families = 4;

// A size x size texture with values in [-1, 1] whose features are about `wavelength_px` apart.
//   waves:  plane waves of one direction, slightly bent (Gabor's carrier)
//   clouds: gradient noise of two octaves (K. Perlin, "An image synthesizer", SIGGRAPH 1985)
//   cells:  distance to the second nearest less that to the nearest of scattered points (S. Worley,
//           "A cellular texture basis function", SIGGRAPH 1996): Voronoi cells with dark walls
//   spots:  short-range activation and long-range inhibition, iterated from noise (D. Young, "A local
//           activator-inhibitor model of vertebrate skin patterns", Math. Biosci. 72 (1984))
std::vector<float> draw_texture(RandomStream& random, TextureFamily family, int size, double wavelength_px);

}  // namespace superstep::data
