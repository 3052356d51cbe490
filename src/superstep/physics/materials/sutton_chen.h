// The Sutton-Chen potential of face-centred cubic metals (A. P. Sutton and J. Chen, Phil. Mag. Lett. 61, 139
// (1990)): E = eps [ 1/2 sum_ij (a/r)^n - c sum_i sqrt(rho_i) ], rho_i = sum_j (a/r)^m.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/atoms/configuration.h"
#include "superstep/physics/materials/neighbor_list.h"

namespace superstep::data {

struct SuttonChen {
  std::string symbol;
  int n, m;
  double epsilon;  // eV
  double c;
  double a;  // lattice constant, A
};
// The seven metals of the paper: Al, Ni, Cu, Pd, Ag, Pt, Au.
std::span<const SuttonChen> sutton_chen_metals();
// Throws Error (invalid_argument) with the nearest symbol.
const SuttonChen& find_sutton_chen(std::string_view symbol);

// 1 below `start`, 0 beyond `cutoff`, between them x^3(-6x^2+15x-10)+1 with x = (r-start)/(cutoff-start):
// continuous with its first two derivatives (Wang et al., Comput. Phys. Commun. 228, 178 (2018)). A start at
// the cutoff is a sharp end.
struct SmoothCutoff {
  double start, cutoff;  // A
  double value(double r) const;
  double slope(double r) const;  // per A
};

struct Evaluation {
  double energy = 0;               // eV
  std::vector<Cartesian> forces;   // eV/A
  std::array<double, 9> virial{};  // eV, -dE/d(strain)
};

// Both sums are multiplied by the cutoff function. The pairs may reach beyond the cutoff.
Evaluation evaluate_sutton_chen(const SuttonChen& metal, const SmoothCutoff& cutoff,
                                std::span<const Cartesian> positions, std::span<const NeighborPair> pairs);

// Energy of an atom of the perfect crystal of lattice constant `lattice`, eV, summed over all neighbours
// within `cutoff` (sharp).
double sutton_chen_lattice_energy(const SuttonChen& metal, double lattice, double cutoff);

// A perfect crystal of cells^3 cubic cells of four atoms.
Configuration face_centred_cubic(int element, double lattice, int cells);

}  // namespace superstep::data
