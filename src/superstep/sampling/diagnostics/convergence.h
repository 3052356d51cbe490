// Have the chains forgotten where they came from, and how many independent draws are their draws worth?
//
// A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner, Bayesian Analysis 16, 667 (2021): chains
// are split in halves and their draws replaced by the normal scores of their ranks, so that heavy tails and
// infinite variances do no harm.
#pragma once

#include <span>
#include <vector>

namespace superstep::sampling {

// Draws of one number, a chain a row. Chains are of one length.
using Chains = std::vector<std::vector<double>>;

struct Convergence {
  double r_hat = 0;      // of location and of spread, the larger one; 1: the chains agree
  double effective = 0;  // independent draws that would say as much of the mean (of the values as they are)
  double bulk = 0;       // the same of ranks: of the middle
  double tail = 0;       // of the 5 % and the 95 % quantile, the smaller one
  double error_of_mean = 0;  // standard error of the mean by Monte Carlo
};

// NaN where a chain has less than four draws, a draw is not finite, or all draws are equal.
Convergence convergence(const Chains& chains);

// The parts of which it is made. `chains` are taken as they are.
Chains split_in_halves(const Chains& chains);  // the middle draw of an odd number is left out
Chains normal_scores(const Chains& chains);    // of the ranks over all chains; equal draws share their mean
// The square root of (between- and within-chain variance) / (within-chain variance): A. Gelman, D. Rubin
// (1992).
double potential_scale_reduction(const Chains& chains);
// With autocorrelations summed over all chains as long as pairs of neighbours are positive, and no longer
// than they fall (C. Geyer, Statistical Science 7, 473 (1992)).
double effective_draws(const Chains& chains);

// x below which a standard normal number lies with probability p in (0, 1).
double normal_quantile(double p);

// How well momenta lead from one energy to another: below 0.3 the tails are hardly reached (M. Betancourt,
// arXiv 1604.00695). Energies of one chain.
double energy_information(std::span<const double> energies);

}  // namespace superstep::sampling
