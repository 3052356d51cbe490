#include "superstep/machine/ipu/operators.h"

#include <algorithm>
#include <cmath>

#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::machine::ipu {
namespace {

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::ceil(value)); }

double per_tile(const Hardware& hardware, double elements) {
  return std::ceil(elements / static_cast<double>(hardware.tiles));
}

Plan plan_of(const Hardware& hardware, const char* vertex, double elements) {
  Plan plan;
  plan.vertex = vertex;
  plan.tiles = std::min(hardware.tiles, std::max<std::int64_t>(1, whole(elements)));
  plan.partition = "elements over all tiles";
  plan.cycles = program_cycles(hardware);
  plan.bytes.code = 400;
  return plan;
}

}  // namespace

Plan plan_elementwise(const Hardware& hardware, const Elementwise& work) {
  Plan plan = plan_of(hardware, "element-wise", work.elements);
  const double share = per_tile(hardware, work.elements);
  const std::int64_t fixed = work.inputs < 2 ? 20 : work.element == ElementType::f16 ? 32 : 41;
  const std::int64_t cycles = elementwise_cycles(hardware, whole(share), hardware.vector_width(work.element),
                                                 work.cycles_per_vector + (work.inputs > 2 ? work.inputs - 2 : 0),
                                                 fixed, 2);
  plan.cycles += superstep_cycles(hardware, static_cast<double>(cycles), work.broadcast_bytes);
  plan.bytes.operands = share * (work.inputs + 1) * static_cast<double>(bytes_of(work.element));
  return plan;
}

// Every tile reduces what it has of each output; where one output lies on several tiles, their sums are
// exchanged and reduced again.
Plan plan_reduction(const Hardware& hardware, const Reduction& work) {
  const double share = per_tile(hardware, work.outputs * work.depth);
  Plan plan = plan_of(hardware, "reduce", work.outputs * work.depth);
  const double tiles = static_cast<double>(hardware.tiles);
  // Tiles that share an output.
  const double spread = std::min(work.depth, std::max(1.0, std::floor(tiles / work.outputs)));
  const double outputs = std::max(1.0, std::ceil(work.outputs * spread / tiles));
  const double depth = std::ceil(work.depth / spread);
  plan.cycles += superstep_cycles(
      hardware, static_cast<double>(reduce_cycles(hardware, whole(outputs), whole(depth), work.element)),
      share * static_cast<double>(bytes_of(work.element)));
  if (spread > 1)
    plan.cycles += superstep_cycles(
        hardware, static_cast<double>(reduce_cycles(hardware, 1, whole(spread), ElementType::f32)), 4 * spread);
  plan.bytes.operands = share * static_cast<double>(bytes_of(work.element));
  plan.bytes.temporary = plan.bytes.operands;
  return plan;
}

// A worker loads a vector of channels, combines, and stores after the window: forward three instructions a
// position; backward compares with the maximum and adds.
Plan plan_pooling(const Hardware& hardware, const Pooling& work, bool backward) {
  const double elements = backward ? work.inputs : work.outputs;
  Plan plan = plan_of(hardware, backward ? "pooling gradient" : "pooling", elements);
  const double share = per_tile(hardware, elements);
  const double vectors = std::ceil(std::ceil(share / static_cast<double>(hardware.workers)) /
                                   static_cast<double>(hardware.vector_width(work.element)));
  const double window = backward ? work.window * work.outputs / work.inputs : work.window;
  const double instructions = backward && work.maximum ? 7 : 2;
  const double worker = 50 + vectors * (12 + window * (4 + instructions));
  const double bytes = static_cast<double>(bytes_of(work.element));
  const double halo = backward ? 3 * std::min(window, 4.0) : 1.5 * work.inputs / work.outputs;
  plan.cycles += superstep_cycles(hardware, hardware.scalar_scale * static_cast<double>(hardware.workers) * worker,
                                  share * halo * bytes);
  plan.bytes.operands = per_tile(hardware, work.inputs + work.outputs) * bytes;
  plan.bytes.temporary = share * halo * bytes;
  return plan;
}

Plan plan_rearrangement(const Hardware& hardware, double bytes, std::int64_t atom) {
  Plan plan = plan_of(hardware, "rearrange", bytes / 4);
  const double share = bytes / static_cast<double>(hardware.tiles);
  plan.cycles += exchange_phase(hardware, share) + rearrange_cycles(hardware, share, atom);
  plan.bytes.operands = 2 * share;
  return plan;
}

Plan plan_fill(const Hardware& hardware, double elements, ElementType element) {
  Plan plan = plan_of(hardware, "fill", elements);
  const double share = per_tile(hardware, elements);
  plan.cycles += superstep_cycles(hardware, static_cast<double>(fill_cycles(hardware, whole(share), element)), 0);
  plan.bytes.operands = share * static_cast<double>(bytes_of(element));
  return plan;
}

Plan plan_cast(const Hardware& hardware, double elements, ElementType from, ElementType to) {
  Plan plan = plan_of(hardware, "cast", elements);
  const double share = per_tile(hardware, elements);
  plan.cycles += superstep_cycles(hardware, static_cast<double>(cast_cycles(hardware, whole(share), from, to)), 0);
  plan.bytes.operands = share * static_cast<double>(bytes_of(from) + bytes_of(to));
  return plan;
}

}  // namespace superstep::machine::ipu
