// Structural formulas for reports, with what each atom means to a model.
#pragma once

#include <span>
#include <string>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::workload {

// An SVG drawing of the molecule (physics/chemistry/depiction.h) in the colours of a page. Behind every atom
// lies a disc: red where its share raises the value, blue where it lowers it, as opaque as the share is large
// beside `most`. `shares` is empty or has one for each atom. `title` is what the pointer tells.
std::string molecule_svg(const data::Molecule& molecule, std::span<const double> shares, double most,
                         const std::string& title);

}  // namespace superstep::workload
