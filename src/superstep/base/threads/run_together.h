// Threads that need each other: what waits at a barrier must not be started one short.
#pragma once

#include "superstep/base/function_ref.h"

namespace superstep {

// Starts `wanted` threads, or as many as the system gives; where it gives none, the caller is the only one.
// Calls prepare(threads) when their number is known, then body(index) on each of them at the same time, and
// returns when all have. `prepare` and `body` must not throw.
void run_together(int wanted, FunctionRef<void(int threads)> prepare, FunctionRef<void(int index)> body);

}  // namespace superstep
