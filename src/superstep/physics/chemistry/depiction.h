// Molecules in the plane: places for their atoms, as structural formulas are drawn. Rings are regular
// polygons that share sides where they are fused, chains zigzag at 120 degrees, substituents spread over the
// free side; where that puts atoms on each other, parts are mirrored and turned about single bonds until it
// does not.
#pragma once

#include <vector>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

struct PlanePoint {
  double x = 0, y = 0;
};

// One for each atom, in units of a bond. Parts that no bond joins lie side by side. The same for the same
// molecule always.
std::vector<PlanePoint> depict(const Molecule& molecule);

// How close two atoms come that no bond joins; infinite where there are no two.
double least_distance(const Molecule& molecule, const std::vector<PlanePoint>& places);

}  // namespace superstep::data
