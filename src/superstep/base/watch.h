// What long work asks of the program that it runs in, and tells it; both are the whole process's. An empty
// function ends it. The functions must not throw.
#pragma once

#include <functional>
#include <string_view>

#pragma GCC visibility push(default)  // part of the library's interface: what is declared here is exported

namespace superstep {

// Asked between steps, often, by the threads that work: whether to stop. The work then ends with Error
// (interrupted).
void set_interrupt_check(std::function<bool()> check);

// How far a piece of work is. Texts are valid during the call.
struct ProgressReport {
  std::string_view label, unit, note;
  double done = 0, total = 0;
};
// Told at most ten times a second and at the end, by the thread that works, whether or not a bar is drawn.
void set_progress_listener(std::function<void(const ProgressReport&)> listener);

}  // namespace superstep

#pragma GCC visibility pop
