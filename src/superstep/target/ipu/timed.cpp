#include "superstep/target/ipu/timed.h"

#include <chrono>

#include "superstep/bsp/engine.h"
#include "superstep/target/ipu/ipu.h"

namespace superstep::target::ipu {

namespace {

constexpr std::size_t most_accesses = 10'000'000;  // about 400 MB of the host's memory

}  // namespace

bsp::Profile timed_profile(const graph::Graph& graph, std::string_view machine, LowerOptions options) {
  const auto start = std::chrono::steady_clock::now();
  options.data = false;
  const LoweredGraph lowered = lower(graph, target_of(machine), hardware_of(machine), options);
  const bsp::Program programs[] = {lowered.program};
  bsp::Engine engine(lowered.graph, programs, {.timing_only = true, .trace_events = 20000},
                     {.allow_out_of_memory = true, .timing_only = true, .most_accesses = most_accesses});
  engine.run();
  bsp::Profile profile = engine.profile();
  profile.compilation.compile_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return profile;
}

}  // namespace superstep::target::ipu
