// Winds and temperatures of columns of air from the ground to the mesosphere, drawn at random: what a weather
// model might hand to a scheme of gravity waves. Jets, their seasons and the oscillation over the equator
// have the places and sizes that climatologies give them; none is fitted to one.
#pragma once

#include <vector>

#include "superstep/base/random.h"
#include "superstep/physics/flow/gravity_waves.h"

namespace superstep::data {

struct AirColumn {
  double latitude = 0;                    // degrees, drawn evenly over the sphere
  double season = 0;                      // 1: winter of the north, -1: of the south
  std::vector<double> u, v, temperature;  // m/s, m/s, K, of the layers of the grid
};

AirColumn draw_air_column(RandomStream& random, const WaveGrid& grid);

}  // namespace superstep::data
