#include "superstep/target/ipu/lower/timed.h"

#include "superstep/base/stopwatch.h"
#include "superstep/bsp/engine/engine.h"
#include "superstep/target/ipu/chips/chip_options.h"
#include "superstep/target/ipu/chips/chip_program.h"
#include "superstep/target/ipu/ipu.h"

namespace superstep::target::ipu {

namespace {

constexpr std::size_t most_events = 20'000;        // kept of a trace, as the engine's own default
constexpr std::size_t most_accesses = 10'000'000;  // about 400 MB of the host's memory

bsp::Profile counted(const LoweredGraph& lowered, const Stopwatch& watch) {
  const bsp::Program programs[] = {lowered.program};
  bsp::Engine engine(lowered.graph, programs, {.timing_only = true, .trace_events = most_events},
                     {.allow_out_of_memory = true,
                      .allow_vertex_aliases = true,
                      .timing_only = true,
                      .most_accesses = most_accesses});
  engine.run();
  bsp::Profile profile = engine.profile();
  profile.compilation.compile_seconds = watch.seconds();
  return profile;
}

}  // namespace

bsp::Profile timed_profile(const graph::Graph& graph, std::string_view machine, LowerOptions options) {
  const Stopwatch watch;
  options.data = false;
  return counted(lower(graph, device_of(machine), hardware_of(machine), options), watch);
}

TimedChips timed_profile(const GraphAtBatch& model, std::string_view machine, const CompileOptions& options,
                         LowerOptions lower_options) {
  const Stopwatch watch;
  lower_options.data = false;
  const ChipProgram program = lower_for(model, machine, ports_of(model, options), options, lower_options);
  return {counted(program.lowered, watch), program.layout};
}

}  // namespace superstep::target::ipu
