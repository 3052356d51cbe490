// Programs over what a device keeps beside its memory: cycles, modes of floating point, seeds.
#include <poplar/CSRFunctions.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/RandomSeed.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/notes.h"
#include "superstep/poplar/replicas/program_parts.h"

namespace poplar {
namespace {

program::Program counting(const Tensor& count, bool begins, const DebugContext& context) {
  struct Counting : program::Program {
    explicit Counting(core::bsp::Program program)
        : Program(std::make_shared<core::ProgramData>(core::ProgramData{std::move(program), {}, {}})) {}
  };
  return core::guarded([&]() -> program::Program {
    return Counting(core::each_part(count, context.getPathName(), [&](const Tensor& part, std::size_t) {
      return core::bsp::CountCycles(core::machine_tensor(part), begins, context.getPathName());
    }));
  });
}

std::string name_or(const DebugContext& context, const char* name) {
  return context.getPathName().empty() ? std::string(name) : context.getPathName();
}

// Rounding is to nearest, ties to even, and what is no number is a result like any other.
void say_what_is_not_computed(bool stochastic, bool exceptions) {
  if (stochastic)
    core::say_once("stochastic rounding is asked for: results are rounded to nearest, ties to even");
  if (exceptions)
    core::say_once(
        "exceptions of floating point are asked for: none is raised, NaN and infinity are results");
}

// Chosen: there is no generator behind them.
std::uint32_t fixed_seed(std::size_t i) { return static_cast<std::uint32_t>(0x9e3779b9u * (i + 1)); }

}  // namespace

Tensor cycleCount(Graph& graph, program::Sequence& sequence, unsigned tile, SyncType sync,
                  const DebugContext& context) {
  const Tensor count = graph.addVariable(UNSIGNED_INT, {2}, name_or(context, "cycleCount"));
  graph.setTileMapping(count, tile);
  sequence = program::Sequence({program::Sync(sync), counting(count, true, context), sequence,
                                program::Sync(sync), counting(count, false, context)});
  return count;
}
Tensor cycleCount(Graph& graph, program::Sequence& sequence, unsigned tile, const DebugContext& context) {
  return cycleCount(graph, sequence, tile, SyncType::INTERNAL, context);
}

void setFloatingPointBehaviour(Graph&, program::Sequence&, const FloatingPointBehaviour& asked,
                               const DebugContext&) {
  say_what_is_not_computed(asked.esr, asked.inv || asked.div0 || asked.oflo);
}
void setFloatingPointBehaviour(Graph&, program::Sequence&, const Tensor&, const DebugContext&) {}
void setStochasticRounding(Graph&, program::Sequence&, bool enable, const DebugContext&) {
  say_what_is_not_computed(enable, false);
}

Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence&, const FloatingPointBehaviour&,
                                          const FloatingPointBehaviour& set, const DebugContext& context) {
  say_what_is_not_computed(set.esr, set.inv || set.div0 || set.oflo);
  const Tensor behaviour =
      graph.addVariable(UNSIGNED_INT, {graph.getTarget().getNumTiles()}, VariableMappingMethod::LINEAR,
                        name_or(context, "floatingPointBehaviour"));
  graph.setInitialValue(behaviour, 0u);
  return behaviour;
}

Tensor getHwSeeds(Graph& graph, program::Sequence&, const DebugContext& context) {
  const Target& target = graph.getTarget();
  const Tensor seeds =
      graph.addVariable(UNSIGNED_INT, {target.getNumTiles(), target.getNumWorkerContexts(), 4},
                        VariableMappingMethod::LINEAR, name_or(context, "hwSeeds"));
  std::vector<std::uint32_t> values(seeds.numElements());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = fixed_seed(i);
  graph.setInitialValue(seeds, ArrayRef<std::uint32_t>(values));
  return seeds;
}
void setHwSeeds(Graph&, const Tensor& seeds, program::Sequence&, const DebugContext&) {
  if (seeds.elementType() != UNSIGNED_INT)
    throw type_error("setHwSeeds: " + core::describe(seeds) + " is " + seeds.elementType().toString());
}

}  // namespace poplar
