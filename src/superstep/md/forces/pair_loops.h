// The loops over neighbours in which classical dynamics spends its time, for the vectors of the machine at
// hand: energies, forces and the virial of some atoms after each other. Units: A, eV.
#pragma once

#include <array>
#include <span>

#include "superstep/md/forces/neighbours.h"
#include "superstep/physics/materials/sutton_chen.h"

namespace superstep::md {

using data::SmoothCutoff;

// Atoms first to last (excluded), and where what is found of them is added: half of each pair's energy,
// forces, and half of each pair's virial (xx, yy, zz, yz, xz, xy; null where it is not wanted).
struct AtomRange {
  const Neighbours& neighbours;
  std::size_t first, last;
  double* energies;   // by atom
  Cartesian* forces;  // by atom
  double* virial;
};

// 4 epsilon ((sigma/r)^12 - (sigma/r)^6).
struct LennardJones {
  double epsilon, sigma;  // eV, A
};
void add_lennard_jones(const LennardJones& pair, const SmoothCutoff& end, const AtomRange& range);

// depth (exp(-2 alpha (r - r0)) - 2 exp(-alpha (r - r0))).
struct Morse {
  double depth, alpha, r0;  // eV, 1/A, A
};
void add_morse(const Morse& pair, const SmoothCutoff& end, const AtomRange& range);

// One metal of Sutton and Chen: the density of each atom (written), then all that pairs do, given eps c / (2
// sqrt(density)) of every place.
void find_densities(const data::SuttonChen& metal, const SmoothCutoff& end, const AtomRange& range,
                    double* densities);
void add_embedded(const data::SuttonChen& metal, const SmoothCutoff& end, const AtomRange& range,
                  const double* binding);

// Several metals, mixed by H. Rafii-Tabar and A. P. Sutton, Phil. Mag. Lett. 63, 217 (1991): of unlike atoms
// the geometric means of eps and a, the arithmetic ones of n and m. Of every place half of log eps, log a, n
// and m: those of a pair are the sums.
struct MixedMetals {
  const double *log_epsilon, *log_a, *n, *m;
};
void find_mixed_densities(const MixedMetals& metals, const SmoothCutoff& end, const AtomRange& range,
                          double* densities);
void add_mixed_embedded(const MixedMetals& metals, const SmoothCutoff& end, const AtomRange& range,
                        const double* binding);

// Charges q_i q_j (coulomb / r + linear r + P(t)), t = 2 r^2 / cutoff^2 - 1, and a Lennard-Jones term where
// both are oxygens.
struct ChargedPairs {
  static constexpr int most_terms = 40;
  std::array<double, most_terms> polynomial{};  // ascending, eV
  int terms = 1;
  double coulomb = 0, linear = 0;  // eV A, eV/A
  LennardJones oxygens{};
};
void add_charged(const ChargedPairs& pairs, const SmoothCutoff& end, const AtomRange& range,
                 const double* charges, const double* is_oxygen);

}  // namespace superstep::md
