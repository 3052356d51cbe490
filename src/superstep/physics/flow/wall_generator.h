// Points above a cooled wall with the shear stress below them, for wall models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/physics/generator.h"

namespace superstep::data {

// velocity 3, velocity gradient 9 (du_i/dx_j, row by row), pressure gradient 3, density.
inline constexpr int wall_features = 16;
std::vector<std::string> wall_feature_names();  // "u", "v", "w", "du_dx", ...

// --out NAME.csv writes a table, one line a point.
GeneratorEntry wall_generator();  // "wallmodel"

}  // namespace superstep::data
