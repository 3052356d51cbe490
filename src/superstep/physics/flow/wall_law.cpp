#include "superstep/physics/flow/wall_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

constexpr double karman = 0.4, damping_length = 17;

// Nodes on [0, height]: cells grow by a constant factor from the wall, 40 times from first to last.
std::vector<double> stretched_nodes(double height, int cells) {
  const double growth = std::pow(40.0, 1.0 / (cells - 1));
  std::vector<double> nodes{0};
  for (double cell = 1, y = 0; static_cast<int>(nodes.size()) <= cells; cell *= growth)
    nodes.push_back(y += cell);
  for (double& node : nodes) node *= height / nodes.back();
  return nodes;
}

class Column {
 public:
  Column(const WallColumn& column, int cells)
      : column_(column), y_(stretched_nodes(column.height, cells)), u_(y_.size()) {
    for (std::size_t j = 0; j < y_.size(); ++j) u_[j] = column.speed * y_[j] / column.height;
  }

  // One step of the fixed point: the stress that belongs to the flow with this stress's viscosity.
  double next_stress(double stress) {
    std::vector<double> conductance;  // of the faces between nodes: viscosity over distance
    for (std::size_t j = 0; j + 1 < y_.size(); ++j)
      conductance.push_back(viscosity((y_[j] + y_[j + 1]) / 2, stress) / (y_[j + 1] - y_[j]));
    solve(conductance);
    // The balance of the half cell at the wall carries the stress from its face to the wall.
    return conductance[0] * (u_[1] - u_[0]) - source(0) * (y_[1] - y_[0]) / 2;
  }
  double slope_at_height() const {
    // Second order from the last two cells.
    const std::size_t n = y_.size() - 1;
    const double a = y_[n] - y_[n - 1], b = y_[n - 1] - y_[n - 2];
    const double last = (u_[n] - u_[n - 1]) / a, before = (u_[n - 1] - u_[n - 2]) / b;
    return last + (last - before) * a / (a + b);
  }
  const std::vector<double>& y() const { return y_; }
  const std::vector<double>& u() const { return u_; }

 private:
  double viscosity(double y, double stress) const {
    const double velocity = std::sqrt(std::abs(stress) / column_.density);
    const double damping = 1 - std::exp(-y * velocity / column_.viscosity / damping_length);
    return column_.density * (column_.viscosity + karman * y * velocity * damping * damping);
  }
  double source(std::size_t j) const {
    const double share = column_.speed > 0 ? u_[j] * u_[j] / column_.speed : 0;
    return column_.pressure_gradient + column_.density * column_.acceleration * share;
  }
  // Conductances times differences balance the sources, with u fixed at both ends.
  void solve(const std::vector<double>& conductance) {
    const std::size_t n = y_.size() - 1;
    std::vector<double> upper(n), value(n);
    for (std::size_t j = 1; j < n; ++j) {
      const double below = conductance[j - 1], above = conductance[j];
      const double right =
          -source(j) * (y_[j + 1] - y_[j - 1]) / 2 + (j + 1 == n ? above * column_.speed : 0);
      const double pivot = below + above - below * upper[j - 1];
      upper[j] = above / pivot;
      value[j] = (right + below * value[j - 1]) / pivot;
    }
    u_[n] = column_.speed;
    for (std::size_t j = n - 1; j > 0; --j) u_[j] = value[j] + (j + 1 < n ? upper[j] * u_[j + 1] : 0);
  }

  const WallColumn& column_;
  std::vector<double> y_, u_;
};

void check(double value, const char* what, bool may_be_zero) {
  if (!(value > 0 || (may_be_zero && value == 0)) || !std::isfinite(value))
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}", what, value), "wall model");
}

}  // namespace

double reichardt(double y_plus) {
  return std::log1p(karman * y_plus) / karman +
         7.8 * (1 - std::exp(-y_plus / 11) - y_plus / 11 * std::exp(-0.33 * y_plus));
}

double reichardt_slope(double y_plus) {
  return 1 / (1 + karman * y_plus) +
         7.8 / 11 * (std::exp(-y_plus / 11) - (1 - 0.33 * y_plus) * std::exp(-0.33 * y_plus));
}

double friction_velocity(double speed, double height, double viscosity) {
  check(speed, "the speed", true);
  check(height, "the height", false);
  check(viscosity, "the viscosity", false);
  if (speed == 0) return 0;
  // The logarithm of u_tau: the profile is nearly linear in it. From the larger of a laminar and a turbulent
  // guess.
  double value = std::log(std::max(std::sqrt(speed * viscosity / height), speed / 25));
  for (int iteration = 0; iteration < 100; ++iteration) {
    const double friction = std::exp(value), y_plus = height * friction / viscosity;
    const double miss = friction * reichardt(y_plus) - speed;
    const double slope = friction * (reichardt(y_plus) + y_plus * reichardt_slope(y_plus));
    const double step = std::clamp(miss / slope, -1.0, 1.0);
    value -= step;
    if (std::abs(step) < 1e-13) break;
  }
  return std::exp(value);
}

WallProfile solve_wall_column(const WallColumn& column, int cells) {
  check(column.height, "the height", false);
  check(column.speed, "the speed", true);
  check(column.density, "the density", false);
  check(column.viscosity, "the viscosity", false);
  Column flow(column, cells);
  const double friction = friction_velocity(column.speed, column.height, column.viscosity);
  double stress = column.density * friction * friction;
  const double scale = std::max(stress, 1e-300);
  // Relaxed: the full step overshoots, and more so near separation.
  for (int iteration = 1; iteration <= 2000; ++iteration) {
    const double next = flow.next_stress(stress);
    const double change = next - stress;
    stress += (iteration < 150 ? 0.7 : 0.15) * change;
    if (!std::isfinite(stress)) break;
    if (std::abs(change) < 1e-11 * scale)
      return {stress, flow.slope_at_height(), flow.y(), flow.u(), iteration};
  }
  throw Error(ErrorCode::diverged, fmt::format("the shear stress does not settle ({})", stress),
              "wall model");
}

}  // namespace superstep::data
