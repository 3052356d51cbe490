// Clusters of atoms as drawings for reports, with arrows at the atoms.
#pragma once

#include <span>
#include <string>

#include "superstep/file/atoms/configuration.h"

namespace superstep::workload {

// Arrows of one kind, one at each atom; `scale` is in A for each unit of theirs.
struct AtomArrows {
  std::span<const data::Cartesian> vectors;
  std::string color;  // a CSS colour
};

// An SVG drawing along the axis in which the cluster is thinnest: the nearer an atom, the later it is drawn;
// atoms nearer than a bond are joined. `title` is what the pointer tells.
std::string atoms_svg(const data::Configuration& atoms, std::span<const AtomArrows> arrows, double scale,
                      const std::string& title);

}  // namespace superstep::workload
