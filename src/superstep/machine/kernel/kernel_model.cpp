#include "superstep/machine/kernel/kernel_model.h"

#include <algorithm>

#include "superstep/machine/value_memory.h"

namespace superstep::machine {
namespace {

bool uses_matrix_units(const Work& work) {
  return work.kind == WorkKind::product || work.kind == WorkKind::recurrent ||
         work.kind == WorkKind::attention;
}

}  // namespace

Bounds KernelModel::bounds(const Precision& precision) const {
  const bool narrow = precision.data != ElementType::f32;
  const double wide =
      precision.name == "tf32" && value("peak_tf32") > 0 ? value("peak_tf32") : value("peak_f32");
  return {narrow ? value("peak_f16") : wide, value("memory_rate")};
}

Parts KernelModel::parts_of(const Work& work, const Precision& precision) const {
  Parts parts;
  double rate = value("peak_f32");
  if (uses_matrix_units(work))
    rate = bounds(precision).peak_flops * value("matrix_efficiency") *
           of_stack(precision.name == "f32" ? "matrix_share_f32" : "matrix_share", 1) * work.flops /
           (work.flops + value("matrix_half_flops") * bounds(precision).peak_flops / value("peak_f16"));
  const double arithmetic = work.flops > 0 ? work.flops / rate : 0;
  const double bytes = (work.read_bytes + work.write_bytes) /
                       (value("memory_rate") * value("memory_efficiency") * of_stack("memory_share", 1));
  (arithmetic >= bytes ? parts.compute : parts.memory) = std::max(arithmetic, bytes);
  // A stack's launches run beside the device; what is left of one there is the least of the range.
  const double least =
      machine().stack() ? machine().constant("launch_overhead").low : value("launch_overhead");
  parts.launch = std::max(0.0, least - parts.total());
  return parts;
}

// The host's time to launch what a kernel does. An optimiser that is not fused launches its arithmetic one
// operator after the other, for each parameter.
double KernelModel::launch_seconds(const Work& work) const {
  const Stack& stack = *machine().stack();
  switch (work.phase) {
    case graph::Phase::forward:
      return stack.value("launch") * (1 + (uses_matrix_units(work) ? stack.value("cast_launches") : 0));
    case graph::Phase::backward: return stack.value("gradient_launch");
    case graph::Phase::update:
      // Rates and step counters are numbers of the host's.
      if (work.kind != WorkKind::optimizer) return 0;
      return stack.value("update_launch") * std::max(1.0, work.flops / std::max(1.0, work.elements));
  }
  return 0;
}

std::vector<OperatorCost> KernelModel::operators(const graph::Graph&, const std::vector<Work>& works,
                                                 const Precision& precision) const {
  std::vector<OperatorCost> costs;
  for (const Work& work : works)
    costs.push_back({.work = work,
                     .parts = parts_of(work, precision),
                     .how = uses_matrix_units(work) ? "matrix units" : "vector units"});
  return costs;
}

Parts KernelModel::together(std::span<const OperatorCost> costs) const {
  Parts device = CostModel::together(costs);
  if (value("engines_overlap") != 0) {
    Parts matrix, vector;
    for (const OperatorCost& cost : costs) (uses_matrix_units(cost.work) ? matrix : vector) += cost.parts;
    device = matrix.total() >= vector.total() ? matrix : vector;
  }
  if (!machine().stack()) return device;
  double host = 0;
  for (const OperatorCost& cost : costs) host += launch_seconds(cost.work);
  device.launch += std::max(0.0, host - device.total());
  return device;
}

Memory KernelModel::memory(const graph::Graph& graph, std::span<const OperatorCost> costs,
                           const Precision& precision, const MemoryOptions& options) const {
  Memory memory = memory_of_values(graph, costs, precision, options, capacity());
  memory.code = 1e9;  // context and libraries, as commonly seen
  if (options.accumulate) memory.activations += memory.parameters;
  return memory;
}

Fabric KernelModel::fabric(int units) const {
  // The latency of a whole collective, as it is measured.
  const double within = value("group_units") > 0 ? std::min<double>(units, value("group_units")) : units;
  return fabric_of(value("link_rate") * value("link_efficiency"),
                   value("link_latency") / std::max(1.0, 2 * (within - 1)));
}

double KernelModel::link_seconds(double bytes) const {
  return value("link_latency") + bytes / (value("link_rate") * value("link_efficiency"));
}

}  // namespace superstep::machine
