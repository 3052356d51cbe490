// One transition of a Markov chain, by one of several methods that all leave the density as it is.
//
//   nuts        Hamiltonian, as long as the path does not turn back: M. Hoffman, A. Gelman, JMLR 15, 1593
//               (2014), with a multinomial choice among the points of the path and the turning criterion of
//               M. Betancourt, arXiv 1701.02434 (2017), appendix A
//   hmc         Hamiltonian, a fixed number of steps, accepted or not as a whole: R. Neal (2011)
//   metropolis  a normal step around the position, accepted or not: N. Metropolis et al. (1953)
#pragma once

#include <span>

#include "superstep/base/random.h"
#include "superstep/sampling/leapfrog.h"

namespace superstep::sampling {

// An energy so far above that of the beginning that the path is not to be followed (nats; Stan's threshold).
inline constexpr double divergence = 1000;

// Where a chain is, and what its steps are made with.
struct Motion {
  LogDensity& density;
  std::span<const double> inverse_mass;
  double step;
};

struct Transition {
  double acceptance = 0;  // mean probability with which points of the path would be accepted
  double energy = 0;      // kinetic and potential, of what was taken
  int evaluations = 0;    // of the density
  int depth = 0;          // nuts: doublings of the path
  bool divergent = false;
  bool moved = false;
};

// Each moves `point`, whose log density and gradient are those of its position, and draws the momentum anew.
// A transition that is left by an exception leaves the point as it was but for its momentum.
class NoUTurn {
 public:
  NoUTurn(std::size_t size, int most_doublings);
  Transition move(const Motion& motion, RandomStream& random, PhasePoint& point);

 private:
  // A part of the path: a balanced binary tree of its points, in the order in which they were made.
  struct Tree {
    std::vector<double> momentum_sum;
    std::vector<double> first_momentum, last_momentum;  // at its ends
    double log_weight = 0;                              // of the sum of exp(-energy) of its points
    PhasePoint chosen;                                  // one of them, drawn by its weight

    explicit Tree(std::size_t size);
  };
  struct Path;

  bool grow(Path& path, int depth, PhasePoint& end, double direction, Tree& tree);
  bool grow_leaf(Path& path, PhasePoint& end, double direction, Tree& tree);
  bool join(Path& path, Tree& first, Tree& second, double log_accept);

  int most_doublings_;
  PhasePoint forward_, backward_, start_;
  Tree whole_, side_;
  std::vector<Tree> second_halves_;  // by depth
  std::vector<double> sum_;
};

Transition move_by_hmc(const Motion& motion, int steps, RandomStream& random, PhasePoint& point);

// Steps of standard deviation motion.step * sqrt(inverse_mass). Of `point` the gradient is not kept up.
Transition move_by_metropolis(const Motion& motion, RandomStream& random, PhasePoint& point);

// A step with which about four of five leapfrog steps from here would be accepted: the first guess of
// Hoffman and Gelman (2014), algorithm 4. `start`: where the search begins.
double reasonable_step(LogDensity& density, std::span<const double> inverse_mass, double start,
                       RandomStream& random, const PhasePoint& point);

}  // namespace superstep::sampling
