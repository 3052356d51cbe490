// Structures that a simulation begins from: crystals, alloys, boxes of water, files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/file/atoms/configuration.h"

namespace superstep::md {

struct Structure {
  data::Configuration atoms;
  std::vector<data::Cartesian> velocities;  // A/fs; empty for none
};

// "fcc:Cu:3.61:5x5x5": lattice (fcc, bcc, sc), atoms, lattice constant in A, cells along each edge ("5" for
// 5x5x5). Several elements have shares, "Ni0.5Cu0.5", and sit on sites drawn by `seed`. Throws Error
// (invalid_argument) naming the part that is wrong.
Structure make_lattice(const std::string& text, std::uint64_t seed);

// A cubic box of as many molecules at a density (g/cm^3): on a lattice of their own, turned at random.
Structure make_water_box(std::int64_t molecules, double density, std::uint64_t seed);

// Molecules in a ball in open space.
Structure make_water_cluster(std::int64_t molecules, std::uint64_t seed);

// The last frame of an extended XYZ file, or frame `frame` (from 1; 0: the last). Throws Error: what
// data::XyzReader throws; bad_file where there is no such frame, or no atom in it.
Structure read_structure(const std::filesystem::path& path, std::int64_t frame);

// "Cu", "OH2", "CuNi": elements by atomic number.
std::string formula_of(const std::vector<int>& elements);

// Throws Error (invalid_argument) for atoms without a mass, or a box without volume.
void require_sound(const data::Configuration& atoms);

}  // namespace superstep::md
