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
    rate = bounds(precision).peak_flops * value("matrix_efficiency") * work.flops /
           (work.flops + value("matrix_half_flops") * bounds(precision).peak_flops / value("peak_f16"));
  const double arithmetic = work.flops > 0 ? work.flops / rate : 0;
  const double bytes =
      (work.read_bytes + work.write_bytes) / (value("memory_rate") * value("memory_efficiency"));
  (arithmetic >= bytes ? parts.compute : parts.memory) = std::max(arithmetic, bytes);
  parts.launch = std::max(0.0, value("launch_overhead") - parts.total());
  return parts;
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
  if (value("engines_overlap") == 0) return CostModel::together(costs);
  Parts matrix, vector;
  for (const OperatorCost& cost : costs) (uses_matrix_units(cost.work) ? matrix : vector) += cost.parts;
  return matrix.total() >= vector.total() ? matrix : vector;
}

Memory KernelModel::memory(const graph::Graph& graph, std::span<const OperatorCost> costs,
                           const Precision& precision, const MemoryOptions& options) const {
  Memory memory = memory_of_values(graph, costs, precision, options, capacity());
  memory.code = 1e9;  // context and libraries, as commonly seen
  if (options.accumulate) memory.activations += memory.parameters;
  return memory;
}

double KernelModel::all_reduce_seconds(double bytes, int units) const {
  return ring_all_reduce(bytes, units, value("link_rate") * value("link_efficiency"),
                         value("link_latency") / std::max(1, 2 * (units - 1)));
}

double KernelModel::link_seconds(double bytes) const {
  return value("link_latency") + bytes / (value("link_rate") * value("link_efficiency"));
}

}  // namespace superstep::machine
