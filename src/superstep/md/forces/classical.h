// Classical potentials as force fields: pairs, and metals of Sutton and Chen.
#pragma once

#include <memory>
#include <string>

#include "superstep/md/forces/force_field.h"
#include "superstep/md/forces/pair_loops.h"

namespace superstep::md {

std::unique_ptr<ForceField> make_lennard_jones(const LennardJones& pair, const SmoothCutoff& end);
std::unique_ptr<ForceField> make_morse(const Morse& pair, const SmoothCutoff& end);

// Metals of A. P. Sutton and J. Chen (physics/materials/sutton_chen.h) by the atoms' atomic numbers; several
// are mixed (pair_loops.h). Throws Error (invalid_argument) that names the first atom of another element.
std::unique_ptr<ForceField> make_sutton_chen(const std::vector<int>& elements, const SmoothCutoff& end);

}  // namespace superstep::md
