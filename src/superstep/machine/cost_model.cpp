#include "superstep/machine/cost_model.h"

#include <algorithm>

namespace superstep::machine {

double Parts::total() const {
  return compute + memory + exchange + sync + host + launch + collective + fill + idle;
}

Parts& Parts::operator+=(const Parts& other) {
  compute += other.compute;
  memory += other.memory;
  exchange += other.exchange;
  sync += other.sync;
  host += other.host;
  launch += other.launch;
  collective += other.collective;
  fill += other.fill;
  idle += other.idle;
  return *this;
}

Parts operator*(double factor, Parts parts) {
  for (double* part : {&parts.compute, &parts.memory, &parts.exchange, &parts.sync, &parts.host,
                       &parts.launch, &parts.collective, &parts.fill, &parts.idle})
    *part *= factor;
  return parts;
}

const char* Parts::largest() const {
  const std::pair<double, const char*> parts[] = {
      {compute, "compute"}, {memory, "local memory"}, {exchange, "exchange"},     {sync, "sync"},
      {host, "host"},       {launch, "launch"},       {collective, "collective"}, {fill, "pipeline fill"},
      {idle, "idle"}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

Parts CostModel::together(std::span<const OperatorCost> costs) const {
  Parts sum;
  for (const OperatorCost& cost : costs) sum += cost.parts;
  return sum;
}

double CostModel::host_seconds(double bytes) const {
  return value("host_latency") + bytes / value("host_rate");
}

double CostModel::borders_seconds(std::span<const Border> borders) const {
  double seconds = 0;
  for (const Border& border : borders) {
    const double down = border.down > 0 ? link_seconds(border.down) : 0;
    seconds = std::max(seconds, link_seconds(border.up) + down);
  }
  return seconds;
}

}  // namespace superstep::machine
