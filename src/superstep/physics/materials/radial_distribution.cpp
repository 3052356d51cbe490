#include "superstep/physics/materials/radial_distribution.h"

#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/physics/materials/neighbor_list.h"

namespace superstep::data {
namespace {

double shell_volume(double inner, double width) {
  const double outer = inner + width;
  return 4.0 / 3.0 * std::numbers::pi * (outer * outer * outer - inner * inner * inner);
}

}  // namespace

RadialDistribution radial_distribution(const Configuration& configuration, double cutoff, int bins) {
  if (!configuration.cell || bins < 1 || configuration.positions.empty())
    throw Error(ErrorCode::invalid_argument, "a radial distribution needs atoms in a periodic box, and bins");
  RadialDistribution result{cutoff / bins, std::vector<double>(static_cast<std::size_t>(bins), 0.0)};
  const auto& positions = configuration.positions;
  for (const auto& [i, j, shift] : neighbor_pairs(positions, configuration.cell, cutoff)) {
    const double r =
        norm(positions[static_cast<std::size_t>(j)] + shift - positions[static_cast<std::size_t>(i)]);
    const auto bin = static_cast<std::size_t>(r / result.bin_width);
    if (bin < result.g.size()) result.g[bin] += 2;
  }
  const auto atoms = static_cast<double>(positions.size());
  const double density = atoms / std::abs(configuration.cell->volume());
  for (std::size_t k = 0; k < result.g.size(); ++k)
    result.g[k] /=
        atoms * density * shell_volume(static_cast<double>(k) * result.bin_width, result.bin_width);
  return result;
}

double coordination_number(const RadialDistribution& distribution, double number_density, double radius) {
  double neighbors = 0;
  for (std::size_t k = 0; k < distribution.g.size(); ++k) {
    const double inner = static_cast<double>(k) * distribution.bin_width;
    if (inner + distribution.bin_width > radius + 1e-9) break;
    neighbors += distribution.g[k] * number_density * shell_volume(inner, distribution.bin_width);
  }
  return neighbors;
}

}  // namespace superstep::data
