// How much memory a plan takes, and the choice of one that stays below a limit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "superstep/base/function_ref.h"
#include "superstep/target/cpu/plan/plan.h"

namespace superstep::target::cpu {

// Groups that there are where enough micro-batches are; where sums of gradients are small beside the work on
// a batch, up to 64.
inline constexpr std::size_t usual_groups = 8;

// Sums of gradients that are kept apart while a run lasts: micro-batches are summed in groups, each group in
// order and then the groups in an order of their own (gradient_sums.h), so that the bits do not depend on the
// number of threads. Very large models keep one a thread, eight at most.
std::size_t gradient_groups(const Plan& plan, const CompileOptions& options);

// Whether gradients of so many bytes are summed in groups whatever the number of threads.
bool sums_in_groups(std::size_t gradient_bytes);

// Groups that lie in memory at the same time at most. One thread completes them in order: the sums of both
// halves and the group that it works on. Of several threads one may be ahead of all others.
std::size_t gradient_buffers(const Plan& plan, const CompileOptions& options);

// Micro-batches whose activations lie in memory at the same time: one a group that is worked on (there may be
// fewer groups than threads), all where they run in step.
std::size_t arena_count(const Plan& plan, const CompileOptions& options);

// Everything that the executable allocates for the plan: activations and scratch of every thread, parameters
// and what is packed of them, gradients of every group, the update. Not the user's inputs and outputs.
std::size_t plan_bytes(const Plan& plan, const CompileOptions& options);

// What is computed again in the backward pass to keep fewer values (transform/training/recompute.h).
struct Recomputation {
  double share = 0;   // of all operations, that may be done twice
  int stretches = 1;  // of the forward pass, each computed again from its own beginning
};

// How a batch is run: samples at a time, and what is computed again.
struct LimitedChoice {
  std::int64_t micro_batch = 1;
  Recomputation recomputation = {};
  std::size_t bytes = 0;
};

// The largest micro-batch up to `largest` whose plan takes at most `limit` bytes. Where none does, or the
// batch cannot be split, as little recomputation as it takes, at the micro-batch with the smallest plan: that
// is the smallest one, or the whole batch where gradients that wait for the other micro-batches are what is
// large. `bytes_of` plans a micro-batch with a recomputation and says how much memory that takes; the last
// call is that of the plan chosen. Throws Error (out_of_memory) with the smallest there is.
LimitedChoice choose_below(
    std::size_t limit, std::int64_t batch, std::int64_t largest, bool splits,
    FunctionRef<std::size_t(std::int64_t micro_batch, const Recomputation& recomputation)> bytes_of);

}  // namespace superstep::target::cpu
