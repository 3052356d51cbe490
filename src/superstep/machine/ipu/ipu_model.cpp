#include "superstep/machine/ipu/ipu_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/machine/ipu/code_size.h"
#include "superstep/machine/ipu/kernel_planner.h"
#include "superstep/machine/value_memory.h"

namespace superstep::machine::ipu {
namespace {

Parts parts_of(const Cycles& cycles, double clock) {
  Parts parts;
  parts.compute = cycles.compute / clock;
  parts.memory = cycles.rearrange / clock;
  parts.exchange = cycles.exchange / clock;
  parts.sync = cycles.sync / clock;
  parts.launch = cycles.control / clock;
  return parts;
}

// How much fuller the fullest tile is than the mean: parts are whole grains, and small tensors lie on few
// tiles. No source: a tenth, chosen (docs/machines.md).
constexpr double fullest_tile_share = 1.1;

// Of a tile, for one kernel: code and vertices of its supersteps, and of so many pieces that they exchange.
double kernel_code(const Hardware& hardware, const Plan& plan, double pieces) {
  const double supersteps = std::max(1.0, std::round(plan.cycles.sync / std::max(1.0, hardware.sync_cycles)));
  return supersteps * (control_code_bytes + vertex_state_bytes) + pieces * exchange_code_bytes;
}

// Of a tile, for all kernels of a stage; vertices of one kind share their code. A program that is compiled
// for memory has kernels of one plan over the same amount of work as one function, and puts the pieces of one
// partner in order first.
double code_of(std::span<const OperatorCost> costs, std::size_t stage, bool for_memory) {
  std::set<std::string> kinds;
  std::set<std::tuple<std::string, std::string, double, double>> functions;
  double bytes = stack_bytes;
  for (const OperatorCost& cost : costs) {
    if (cost.work.stage != stage) continue;
    kinds.insert(cost.work.op);
    const bool added = functions.emplace(cost.work.op, cost.how, cost.work.flops, cost.work.elements).second;
    if (!for_memory)
      bytes += cost.code_bytes;
    else if (added)
      bytes += cost.least_code_bytes;
  }
  return bytes + vertex_code_bytes * static_cast<double>(kinds.size());
}

}  // namespace

std::vector<OperatorCost> IpuModel::operators(const graph::Graph& graph, const std::vector<Work>& works,
                                              const Precision& precision) const {
  KernelPlanner planner(hardware_, graph, precision);
  const double tiles = static_cast<double>(hardware_.tiles);
  std::vector<OperatorCost> costs;
  for (const Work& work : works) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while predicting");
    const Plan plan = planner.plan(work);
    costs.push_back({.work = work,
                     .parts = parts_of(plan.cycles, hardware_.clock),
                     .how = plan.vertex + ": " + plan.partition,
                     .temporary_bytes = (plan.bytes.temporary + plan.bytes.interleaved) * tiles,
                     .code_bytes = kernel_code(hardware_, plan, plan.bytes.pieces),
                     .least_code_bytes = kernel_code(hardware_, plan, plan.bytes.partners)});
  }
  return costs;
}

Memory IpuModel::memory(const graph::Graph& graph, std::span<const OperatorCost> costs,
                        const Precision& precision, const MemoryOptions& options) const {
  const LiveMoment moment = fullest_moment(graph, costs, precision, options);
  const StateBytes state = state_bytes(graph, costs, precision, options.stage);
  const double tiles = static_cast<double>(hardware_.tiles);
  Memory memory{.limit = capacity(), .parameters = state.parameters};
  place_optimizer(state.optimizer, options, memory);
  memory.activations = moment.activations + (options.accumulate ? state.parameters : 0);
  memory.temporary = moment.temporary;
  memory.largest = moment.values;
  memory.recomputed = moment.recomputed;
  if (!costs.empty()) memory.fullest = costs[moment.kernel].work.name;
  memory.tile_limit = static_cast<double>(hardware_.tile_bytes);
  for (const bool for_memory : {false, true}) {  // as the vendor's public set-ups of large models ask for
    memory.code = code_of(costs, options.stage, for_memory) * tiles;
    memory.fullest_tile = (memory.code + memory.temporary +
                           fullest_tile_share * (memory.parameters + memory.optimizer + memory.activations)) /
                          tiles;
    if (memory.fits()) break;
  }
  return memory;
}

Fabric IpuModel::fabric(int) const {
  return fabric_of(value("link_rate") * value("allreduce_links"), value("link_latency"));
}

// A program's sequence of its own for every gradient: there and back over a tree of chips, with an operator's
// control code and barrier at each end.
double IpuModel::collective_call_seconds(int units) const {
  if (units < 2) return 0;
  const double ends = 2 * (hardware_.program_cycles + hardware_.exchange_setup + hardware_.sync_cycles);
  return 2 * std::ceil(std::log2(units)) * value("link_latency") + ends / hardware_.clock;
}

double IpuModel::link_seconds(double bytes) const {
  return value("link_latency") + bytes / (value("link_rate") * value("allreduce_links"));
}

// Stage s is on chip s, and chips are on a ladder (bsp/compile/link.cpp): those of a rung, 2k and 2k + 1, are
// joined by twice as many links as lead on to the next one. Activations and gradients pass at the same time,
// each over its own direction.
double IpuModel::borders_seconds(std::span<const Border> borders) const {
  double seconds = 0;
  for (std::size_t s = 0; s < borders.size(); ++s) {
    const double within = link_seconds(std::max(borders[s].up, borders[s].down));
    seconds = std::max(seconds, s % 2 == 0 ? within : 2 * within - value("link_latency"));
  }
  return seconds;
}

// There and back, once an update, while the chip waits: an update is a program's last sequence.
double IpuModel::streaming_seconds(double bytes) const { return 2 * bytes / value("streaming_rate"); }
double IpuModel::streaming_capacity() const { return value("streaming_memory"); }

Bounds IpuModel::bounds(const Precision& precision) const {
  const double chip = static_cast<double>(hardware_.tiles) * hardware_.clock;
  const ElementType element = precision.data == ElementType::f32 ? ElementType::f32 : ElementType::f16;
  return {2 * chip * hardware_.peak_macs(element, precision.partials),
          chip * static_cast<double>(hardware_.load_rate + 8)};
}

}  // namespace superstep::machine::ipu
