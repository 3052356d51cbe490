// Atoms in space, with what a force field says of them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "superstep/file/atoms/cartesian.h"

namespace superstep::data {

// A periodic box: three edges as rows, A. The volume is positive for a right-handed box.
struct Cell {
  Cartesian a, b, c;
  double volume() const { return dot(a, cross(b, c)); }
  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Configuration {
  std::vector<int> elements;         // atomic numbers
  std::vector<Cartesian> positions;  // A
  std::optional<Cell> cell;          // none: open boundary
};

// What is known of a configuration; each may be missing.
struct Labels {
  std::optional<double> energy;                 // eV
  std::vector<Cartesian> forces;                // eV/A; empty for none
  std::optional<std::array<double, 9>> virial;  // eV, -dE/d(strain), rows first
};

}  // namespace superstep::data
