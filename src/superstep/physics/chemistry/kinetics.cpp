#include "superstep/physics/chemistry/kinetics.h"

#include <array>
#include <boost/numeric/odeint.hpp>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::data {

double CouplingRates::turnover() const {
  if (!(oxidative_addition > 0) || !(transmetalation > 0) || !(reductive_elimination > 0)) return 0;
  return 1 / (1 / oxidative_addition + 1 / transmetalation + 1 / reductive_elimination);
}

CouplingState integrate_coupling(const CouplingRates& rates, double seconds) {
  namespace odeint = boost::numeric::odeint;
  if (!(seconds >= 0) || !(rates.side_reaction >= 0) || !(rates.deactivation >= 0) || !std::isfinite(seconds))
    throw Error(ErrorCode::invalid_argument, "rates and times of a reaction are not negative");
  using State = std::array<double, 4>;
  const double k = rates.turnover(), kd = rates.side_reaction, kx = rates.deactivation;
  const auto slopes = [&](const State& y, State& slope, double) {
    slope = {-(k * y[3] + kd) * y[0], k * y[3] * y[0], kd * y[0], -kx * y[3]};
  };
  constexpr double tolerance = 1e-10;
  State y = {1, 0, 0, 1};
  odeint::integrate_adaptive(odeint::make_controlled<odeint::runge_kutta_dopri5<State>>(tolerance, tolerance),
                             slopes, y, 0.0, seconds, seconds / 100);
  return {y[0], y[1], y[2], y[3]};
}

double steady_coupling_yield(double turnover, double side_reaction, double seconds) {
  const double both = turnover + side_reaction;
  return both > 0 ? -100 * turnover / both * std::expm1(-both * seconds) : 0;
}

}  // namespace superstep::data
