// What a graph is compiled to: three lists of prepared kernels over memory laid out ahead of time.
//
//   prepare  what depends on parameters alone (packed and converted weights): run when a state has changed
//   body     forward and backward of one micro-batch: every thread runs it on an arena of its own
//   update   once a run, after all micro-batches: sums of gradients, the optimiser, other new state
//
// Memory is a few spaces. Each thread has an arena and scratch, or each micro-batch an arena, where they run
// in step; each gradient group has accumulators; the rest is shared. An operand is a space and an offset, so
// that one list of steps serves every thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/plan/join.h"
#include "superstep/target/target.h"

namespace superstep::target::cpu {

enum class Space : std::uint8_t {
  arena,        // activations of one micro-batch; one a thread
  shared,       // constants, state, and what `prepare` makes of them
  accumulator,  // sums over micro-batches: gradients, scalar outputs; one a group
  update,       // temporaries of the update; once
  input,        // the user's tensor number `port`, at this micro-batch
  output,
  run,  // the RunInfo of this micro-batch
};

struct Operand {
  Space space = Space::arena;
  std::uint32_t port = 0;  // of input and output
  std::size_t offset = 0;  // in bytes
};

struct Step {
  std::shared_ptr<const kernels::Kernel> kernel;
  std::vector<Operand> inputs, outputs;
  PlanStep info;
  const Join* join = nullptr;  // the kernel, where micro-batches in step wait for each other
};

// A state of the graph in shared memory.
struct StateSlot {
  std::string name;
  graph::ValueType type;
  std::size_t offset = 0;  // in shared memory, row-major
};

// A scalar or other unbatched output, averaged over micro-batches in the accumulator.
struct AveragedOutput {
  std::uint32_t port = 0;
  std::size_t offset = 0;  // in the accumulator: f32 values
  std::size_t count = 0;
};

// A counter of samples: the graph, built for a micro-batch, adds `increment` to it; a run adds that once a
// micro-batch.
struct SampleCounter {
  std::size_t offset = 0;  // in shared memory: an i64
  std::int64_t increment = 0;
};

struct ByteRange {
  std::size_t begin = 0, count = 0;
};

struct Plan {
  std::int64_t micro_batch = 0;
  std::vector<Step> prepare, body, update;
  std::size_t arena_bytes = 0, scratch_bytes = 0, shared_bytes = 0, accumulator_bytes = 0, update_bytes = 0;
  std::size_t output_bytes = 0;  // of what the body writes into the caller's outputs, not the arena
  std::vector<StateSlot> states;
  std::vector<std::pair<std::size_t, Tensor>> initial;  // shared offset, elements: constants and states
  std::vector<AveragedOutput> averaged;
  std::vector<std::size_t> accumulator_slots;  // where each value's sum begins, ascending; in bytes
  std::vector<ByteRange> added_to;             // of the accumulator: zero before the first micro-batch
  std::vector<SampleCounter> counters;
  bool trains = false;   // has an update
  bool in_step = false;  // all micro-batches go from join to join together, each on an arena of its own
  std::string choice;    // how the micro-batch came about
};

}  // namespace superstep::target::cpu
