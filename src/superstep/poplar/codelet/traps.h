// What a codelet does that would end the process: an integer divided by zero becomes an error.
#pragma once

namespace poplar::core {

// Calls `compute`. Throws superstep::Error (bad_graph) where the processor refuses one of its integer
// divisions (by zero, or of the smallest number by -1), without the destructors of what it had begun:
// codelets have none that matter. From any thread.
bool with_traps(const char* vertex, bool (*compute)(void* object, unsigned worker), void* object,
                unsigned worker);

}  // namespace poplar::core
