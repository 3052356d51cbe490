// The radial distribution function: how much denser atoms are at a distance from an atom than on average.
#pragma once

#include <span>
#include <vector>

#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

struct RadialDistribution {
  double bin_width = 0;   // A
  std::vector<double> g;  // g[k] over [k, k+1) bin widths; 1 for a gas without correlation
};

// Over all pairs of one periodic configuration up to `cutoff` (A). Throws Error (invalid_argument) without a
// box or bins. Average several configurations by averaging g.
RadialDistribution radial_distribution(const Configuration& configuration, double cutoff, int bins);

// Neighbours of an atom closer than `radius` on average: the integral of g.
double coordination_number(const RadialDistribution& distribution, double number_density, double radius);

}  // namespace superstep::data
