// Clusters of atoms in open space, as those who learn from them want them: what a network refuses its
// baseline refuses too, in the same words.
#pragma once

#include <optional>
#include <string>

#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

// "3 (O)": an atom's number from 1, and its element.
std::string atom_name(const Configuration& atoms, std::size_t atom);

// Throws Error (bad_file) at `place`: no atoms, a periodic box, numbers of no element, coordinates that are
// not finite, two atoms at one place.
void require_cluster(const Configuration& atoms, const std::string& place);

// Throws Error (bad_file) at `place`: no energy, or one that is not finite.
void require_energy(const std::optional<double>& energy, const std::string& place);

}  // namespace superstep::data
