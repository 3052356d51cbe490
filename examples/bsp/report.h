// What the examples print about a run: exact modelled cycles, so that the same program prints the same.
#pragma once

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/bsp/engine/engine.h"
#include "superstep/bsp/graph/vertex.h"

namespace example {

inline void print_steps(const superstep::bsp::Engine& engine) {
  const superstep::bsp::Profile& profile = engine.profile();
  for (std::size_t i = 0; i < profile.total.times.size(); ++i) {
    const superstep::bsp::StepProfile& step = profile.compilation.steps[i];
    const superstep::bsp::StepCost& cost = step.cost;
    fmt::print("{:>6} x {:<16} {:<26} sync {} exchange {} links {} host {} compute {} control {}\n",
               profile.total.times[i], name_of(step.kind), step.name, cost.sync, cost.exchange,
               cost.global_exchange, cost.host_exchange, cost.compute, cost.control);
  }
  fmt::print("total {} cycles, {:.3f} us on {}\n", profile.total_cycles(),
             1e6 * profile.compilation.device.seconds(static_cast<double>(profile.total_cycles())),
             profile.compilation.device.name);
}

// Runs an example; an error is what a user would see, and ends the program with 1.
inline int guarded(void (*body)()) {
  try {
    body();
    return 0;
  } catch (const superstep::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

inline void require(bool right, const char* what) {
  if (!right) throw superstep::Error(superstep::ErrorCode::internal, what);
}

}  // namespace example
