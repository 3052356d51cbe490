// Reaction yields by a kinetic model whose rates are products of factors, one for each component: what a
// chemist who knows the mechanism would fit. Beside it, linear regression on which components were used.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

inline constexpr int component_kinds = 5;  // ligand, base, solvent, electrophile, nucleophile

struct MeasuredYield {
  std::array<int, component_kinds> component{};
  double yield = 0;  // per cent
};
struct YieldTable {
  std::vector<MeasuredYield> reactions;
  std::array<std::vector<std::string>, component_kinds> names;  // of the components
};
// A table with the columns ligand, base, solvent, electrophile, nucleophile and yield, or an HDF5 file of
// `superstep generate yieldgnn`. Throws Error that names file and line.
YieldTable read_yields(const std::filesystem::path& path);

// log of each rate (1/s) as a sum over components; the model of physics/chemistry/kinetics.h.
struct KineticModel {
  std::vector<double> oxidative_ligand, oxidative_electrophile;
  std::vector<double> transmetalation_base, transmetalation_solvent, transmetalation_nucleophile;
  std::vector<double> elimination_ligand;
  std::vector<double> side_base, side_solvent, side_nucleophile;
  std::vector<double> death_ligand;
  double seconds = 60;
  double predict(const std::array<int, component_kinds>& component) const;  // per cent
};
KineticModel fit_kinetics(const std::vector<const MeasuredYield*>& reactions, const YieldTable& table,
                          double seconds);

Entry yieldgnn_baseline();

}  // namespace superstep::baseline
