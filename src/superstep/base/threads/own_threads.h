// Threads beside those of the pool, and what is said where the system does not start one.
#pragma once

#include <functional>
#include <thread>

namespace superstep {

// Throws Error (io) where the system does not start it, as under a limit on processes.
std::thread start_thread(std::function<void()> main);

}  // namespace superstep
