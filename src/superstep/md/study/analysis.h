// What a simulation says: means with their errors, drift, radial distributions, diffusion, speeds. Read from
// the files of its folder, so that it can be said of one that was stopped too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/file/atoms/configuration.h"
#include "superstep/md/study/run_folder.h"

namespace superstep::md {

// The rows of thermo.csv.
struct ThermoSeries {
  std::vector<double> step, time, temperature, pressure, potential, kinetic, conserved,
      volume;  // fs, K, bar, eV, A^3
};

struct Mean {
  double value = 0;
  double error = 0;  // standard error, from the means of ten blocks; NaN below twenty values
};
// Of values in order of time, whose neighbours may be alike. NaN of none.
Mean block_mean(std::span<const double> values);

// Pairs of two elements: how much denser the second is at a distance from the first than on average.
struct PairDistribution {
  std::string label;  // "O-H"
  std::vector<double> g;
};

struct Analysis {
  ThermoSeries thermo;
  std::size_t equilibrated = 0;  // rows before this one count for no mean
  std::size_t atoms = 0;
  Mean temperature, pressure, potential, volume;  // K, bar, eV an atom, A^3
  // Of the conserved energy: slope of a fitted line, meV an atom and ns, and how far it scatters around it,
  // meV an atom.
  double drift = 0, scatter = 0;

  double bin_width = 0;                   // A
  std::vector<PairDistribution> pairs;    // empty in open space
  std::vector<double> lag, displacement;  // ps, A^2: mean squared displacement
  std::optional<double> diffusion;        // m^2/s, from the slope over the middle of the lags
  // Speeds in units of sqrt(kT/m) of each atom: density of what was found and of Maxwell and Boltzmann's.
  std::vector<double> speed, found, expected;
  std::size_t frames = 0;  // that these are taken from
  data::Configuration last;
};

// Throws Error (bad_file) for files that are damaged.
Analysis analyse(const RunFolder& folder, ThreadPool& pool);

// rdf.csv, displacement.csv, speeds.csv.
void write_tables(const Analysis& analysis, const std::filesystem::path& folder);

}  // namespace superstep::md
