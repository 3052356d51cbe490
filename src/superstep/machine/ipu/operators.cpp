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

// Control code around one vertex of a simple operator, in bytes. No source: chosen.
constexpr double control_code_bytes = 80;

Plan plan_of(const Hardware& hardware, const char* vertex, double elements) {
  Plan plan;
  plan.vertex = vertex;
  plan.tiles = std::min(hardware.tiles, std::max<std::int64_t>(1, whole(elements)));
  plan.partition = "elements over all tiles";
  plan.cycles = program_cycles(hardware);
  plan.bytes.code = control_code_bytes;
  return plan;
}

}  // namespace

Plan plan_elementwise(const Hardware& hardware, const Elementwise& work) {
  Plan plan = plan_of(hardware, "element-wise", work.elements);
  const double share = per_tile(hardware, work.elements);
  // Cycles a worker takes to enter: one operand, two in f16, two in f32 (PopLibs, sdk-release-2.0, MIT
  // licence).
  const std::int64_t fixed = work.inputs < 2 ? 20 : work.element == ElementType::f16 ? 32 : 41;
  const std::int64_t cycles =
      elementwise_cycles(hardware, whole(share), hardware.vector_width(work.element),
                         work.cycles_per_vector + (work.inputs > 2 ? work.inputs - 2 : 0), fixed, work.loop);
  plan.cycles += superstep_cycles(hardware, static_cast<double>(cycles), work.broadcast_bytes);
  plan.bytes.operands = share * (work.inputs + 1) * static_cast<double>(bytes_of(work.element));
  return plan;
}

// Every tile reduces what it has of each output; where an output lies on several tiles their sums are
// exchanged and reduced again, in two stages when they are many.
Plan plan_reduction(const Hardware& hardware, const Reduction& work) {
  constexpr double widest_stage = 32;  // partial sums that one stage adds up
  const double vector = static_cast<double>(hardware.vector_width(work.element));
  const double tiles = static_cast<double>(hardware.tiles), total = work.outputs * work.depth;
  Plan plan = plan_of(hardware, "reduce", total);
  const double groups = std::max(1.0, std::ceil(work.outputs / vector));  // outputs reduced together
  const double spread = std::clamp(std::floor(tiles / groups), 1.0, work.depth);
  const double outputs = std::ceil(groups * spread / tiles) * vector;
  const double bytes = static_cast<double>(bytes_of(work.element));
  plan.cycles += superstep_cycles(
      hardware,
      static_cast<double>(reduce_cycles(hardware, whole(outputs), whole(work.depth / spread), work.element)),
      0);
  const int stages = spread <= 1 ? 0 : spread <= widest_stage ? 1 : 2;
  for (int stage = 0; stage < stages; ++stage) {
    const double depth = stages == 1 ? spread : std::sqrt(spread);
    plan.cycles += superstep_cycles(
        hardware, static_cast<double>(reduce_cycles(hardware, whole(vector), whole(depth), ElementType::f32)),
        4 * vector * depth);
    plan.bytes.pieces += 2 * depth;  // in and out
    plan.bytes.partners += 2 * depth;
  }
  plan.bytes.operands = per_tile(hardware, total) * bytes;
  plan.bytes.temporary = 4 * vector * spread;
  return plan;
}

// Tiles share the elements of an output where that is faster; then the best of theirs, each with its place,
// are compared, in two stages when they are many.
Plan plan_arg(const Hardware& hardware, const Reduction& work) {
  constexpr double widest_stage = 32;  // as of sums
  const double tiles = static_cast<double>(hardware.tiles), total = work.outputs * work.depth;
  const double bytes = static_cast<double>(bytes_of(work.element)), pair = bytes + 4;
  const auto spread_over = [&](double spread) {
    Plan plan = plan_of(hardware, "arg", total);
    const std::int64_t own = whole(work.outputs * spread / tiles);
    plan.cycles += superstep_cycles(
        hardware, static_cast<double>(arg_cycles(hardware, own, whole(work.depth / spread))), 0);
    const int stages = spread <= 1 ? 0 : spread <= widest_stage ? 1 : 2;
    const double depth = stages == 1 ? spread : std::sqrt(spread);
    for (int stage = 0; stage < stages; ++stage)
      plan.cycles += superstep_cycles(hardware, static_cast<double>(arg_cycles(hardware, 1, whole(depth))),
                                      pair * depth);
    plan.bytes.operands = per_tile(hardware, total) * bytes;
    plan.bytes.temporary = spread > 1 ? pair * spread : 0;
    return plan;
  };
  Plan alone = spread_over(1);
  Plan shared = spread_over(std::clamp(std::floor(tiles / work.outputs), 1.0, work.depth));
  return shared.cycles.total() < alone.cycles.total() ? shared : alone;
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
  // Instructions: 50 to enter, 12 a vector, 4 a position for its loop. No source, nor for what is received:
  // forwards half as many inputs again as there are a result, backwards three values for up to 4 positions of
  // a window. Such forms were settled while looking at the simulated rows of the GC200 (docs/machines.md).
  const double worker = 50 + vectors * (12 + window * (4 + instructions));
  const double bytes = static_cast<double>(bytes_of(work.element));
  constexpr double shared_rows = 1.5, most_foreign = 4.0;
  const double halo =
      backward ? 3 * std::min(window, most_foreign) : shared_rows * work.inputs / work.outputs;
  plan.cycles +=
      superstep_cycles(hardware, static_cast<double>(hardware.workers) * worker, share * halo * bytes);
  for (int copy = 0; copy < (backward ? 3 : 1); ++copy)
    plan.cycles += rearrange_cycles(hardware, share * bytes, 8);
  plan.bytes.operands = per_tile(hardware, work.inputs + work.outputs) * bytes;
  plan.bytes.temporary = share * halo * bytes;
  plan.bytes.elements = 1;
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
  plan.cycles +=
      superstep_cycles(hardware, static_cast<double>(fill_cycles(hardware, whole(share), element)), 0);
  plan.bytes.operands = share * static_cast<double>(bytes_of(element));
  return plan;
}

Plan plan_cast(const Hardware& hardware, double elements, ElementType from, ElementType to) {
  Plan plan = plan_of(hardware, "cast", elements);
  const double share = per_tile(hardware, elements);
  plan.cycles +=
      superstep_cycles(hardware, static_cast<double>(cast_cycles(hardware, whole(share), from, to)), 0);
  plan.bytes.operands = share * static_cast<double>(bytes_of(from) + bytes_of(to));
  return plan;
}

}  // namespace superstep::machine::ipu
