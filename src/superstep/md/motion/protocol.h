// By which rules atoms move: which quantities are kept, by which baths. Units: fs, K, eV, A.
#pragma once

#include <cstdint>
#include <string>

namespace superstep::md {

enum class Ensemble {
  nve,  // energy and volume
  nvt,  // temperature and volume
  npt,  // temperature and pressure; the box keeps its shape
};

enum class Bath {
  // Stochastic velocity rescaling (G. Bussi, D. Donadio and M. Parrinello, J. Chem. Phys. 126, 014101
  // (2007)):
  // one random number a step turns all velocities by one factor, so that the kinetic energy has the canonical
  // distribution; diffusion hardly feels it, and the centre of mass stays at rest.
  rescaling,
  // Langevin: every atom forgets its velocity at the rate 1/time. Thermalises what rescaling cannot: stiff
  // crystals, clusters, few atoms.
  langevin,
};

struct Protocol {
  Ensemble ensemble = Ensemble::nve;
  Bath bath = Bath::rescaling;
  double timestep = 1;            // fs
  double kelvin = 300;            // of the bath
  double bath_time = 100;         // fs
  double pressure = 0;            // eV/A^3
  double pressure_time = 1000;    // fs
  double compressibility = 1e-6;  // 1/(eV/A^3) of the barostat: a scale of its time, no result depends on it
  std::uint64_t seed = 1;
};

// Which random numbers are whose, by the purpose of base/random.h; the index is the step.
namespace purpose {
inline constexpr std::uint32_t velocities = 1, sites = 2, orientations = 3, heat_bath = 4, barostat = 5;
inline constexpr std::uint32_t langevin = 1000;  // and the number of a block of atoms
}  // namespace purpose

}  // namespace superstep::md
