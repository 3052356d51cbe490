// Threads beside those of the pool, and what is said where the system does not start one.
#pragma once

#include <functional>
#include <thread>

#include "superstep/base/function_ref.h"

namespace superstep {

// Throws Error (io) where the system does not start it, as under a limit on processes.
std::thread start_thread(std::function<void()> main);

// Calls main(index), index in [0, threads), each on a thread of its own, and returns when all have returned.
// All of them run at the same time and may wait for each other: where the system does not start as many
// (Error, io), none is called. `main` must not throw.
void on_own_threads(int threads, FunctionRef<void(int index)> main);

}  // namespace superstep
