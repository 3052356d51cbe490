#include "superstep/machine/collective.h"

#include <algorithm>
#include <cmath>

namespace superstep::machine {
namespace {

double best_all_reduce(double bytes, int units, double rate, double latency) {
  return std::min(ring_all_reduce(bytes, units, rate, latency), tree_all_reduce(bytes, units, rate, latency));
}

}  // namespace

double ring_all_reduce(double bytes, int units, double rate, double latency) {
  if (units < 2) return 0;
  const double n = units;
  return 2 * (n - 1) / n * bytes / rate + 2 * (n - 1) * latency;
}

double tree_all_reduce(double bytes, int units, double rate, double latency) {
  if (units < 2) return 0;
  return 2 * bytes / rate + 2 * std::ceil(std::log2(units)) * latency;
}

double all_reduce_seconds(double bytes, int units, const Fabric& fabric) {
  const int within = fabric.group_units > 0 ? std::min(units, static_cast<int>(fabric.group_units)) : units;
  if (within >= units) return best_all_reduce(bytes, units, fabric.rate, fabric.latency);
  const int groups = static_cast<int>(std::ceil(static_cast<double>(units) / within));
  const double inside = best_all_reduce(bytes, within, fabric.rate, fabric.latency);
  return inside + best_all_reduce(bytes / within, groups, fabric.network_rate, fabric.network_latency);
}

}  // namespace superstep::machine
