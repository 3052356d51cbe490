// How many threads the system lets this process have: limits on processes (ulimit -u), on memory (ulimit -v)
// and of containers are met when a thread is started, and libraries that start their own end the program
// then.
#pragma once

namespace superstep {

// Of `wanted` threads that would run at the same time, the caller counted, as many as can be started now.
// At least 1.
int startable_threads(int wanted);

}  // namespace superstep
