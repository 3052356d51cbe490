// Kinetics of a catalytic cross-coupling: the catalyst turns substrate into product in three steps in a row,
// while the substrate is lost to a side reaction and the catalyst dies.
//
// With the fractions S (substrate), P (product), W (waste) and c (live catalyst):
//   S' = -(k c + kd) S,  P' = k c S,  W' = kd S,  c' = -kx c,  1/k = 1/k_OA + 1/k_TM + 1/k_RE.
#pragma once

namespace superstep::data {

// All in 1/s.
struct CouplingRates {
  double oxidative_addition = 0, transmetalation = 0, reductive_elimination = 0;
  double side_reaction = 0;  // protodeboronation
  double deactivation = 0;   // of the catalyst
  double turnover() const;   // k; 0 when any step has rate 0
};

struct CouplingState {
  double substrate = 1, product = 0, waste = 0, catalyst = 1;
};

// The state after `seconds`, integrated with step-size control (Dormand and Prince) to an error of 1e-9.
// Throws Error (invalid_argument) on negative rates or times.
CouplingState integrate_coupling(const CouplingRates& rates, double seconds);

// Yield in per cent of a catalyst that does not die: 100 k/(k+kd) (1 - exp(-(k+kd)t)).
double steady_coupling_yield(double turnover, double side_reaction, double seconds);

}  // namespace superstep::data
