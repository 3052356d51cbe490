#include "superstep/machine/spatial/spatial_model.h"

#include <algorithm>
#include <cmath>

#include "superstep/machine/value_memory.h"

namespace superstep::machine {

Bounds SpatialModel::bounds(const Precision& precision) const {
  const double usable = value("usable_units") > 0 ? value("usable_units") / value("compute_units") : 1.0;
  return {usable * value(precision.data == ElementType::f32 ? "peak_f32" : "peak_f16"),
          value("chip_memory_rate")};
}

std::vector<OperatorCost> SpatialModel::operators(const graph::Graph&, const std::vector<Work>& works,
                                                  const Precision& precision) const {
  const Bounds bound = bounds(precision);
  std::vector<OperatorCost> costs;
  for (const Work& work : works) {
    OperatorCost cost{.work = work, .how = "laid out over its share of the units"};
    cost.parts.compute = work.flops / (bound.peak_flops * value("compute_efficiency"));
    cost.parts.memory =
        std::max(0.0, (work.read_bytes + work.write_bytes) / bound.memory_rate - cost.parts.compute);
    costs.push_back(cost);
  }
  return costs;
}

// Sections by capacity: what one kernel hands to the next stays on the chip within a section.
Parts SpatialModel::together(std::span<const OperatorCost> costs) const {
  Parts sum = CostModel::together(costs);
  double written = 0, weights = 0, forward = 0;
  bool trains = false;
  for (const OperatorCost& cost : costs) {
    written += cost.work.write_bytes;
    weights += cost.work.weight_bytes;
    if (cost.work.phase == graph::Phase::forward) forward += cost.work.write_bytes;
    trains = trains || cost.work.phase == graph::Phase::backward;
  }
  const double capacity = value("chip_memory"), stages = static_cast<double>(costs.size());
  const double sections =
      std::max({1.0, std::ceil((written + weights) / capacity), std::ceil(stages / value("stage_limit"))});
  if (sections > 1) {
    sum.fill += sections * value("section_switch");
    const double borders = 2 * written / std::max(1.0, stages) * sections;
    // The sections of the backward pass read what those of the forward pass made: it waits beside the chip.
    const double kept = trains ? 2 * forward : 0;
    sum.memory += (borders + kept + weights) / value("memory_rate");
  }
  // The first sample passes all stages before the last one works.
  sum.fill += stages * 1000 / value("clock");
  return sum;
}

Memory SpatialModel::memory(const graph::Graph& graph, std::span<const OperatorCost> costs,
                            const Precision& precision, const MemoryOptions& options) const {
  return memory_of_values(graph, costs, precision, options, capacity());
}

Fabric SpatialModel::fabric(int) const { return fabric_of(value("link_rate"), value("link_latency")); }

double SpatialModel::link_seconds(double bytes) const {
  return value("link_latency") + bytes / value("link_rate");
}

}  // namespace superstep::machine
