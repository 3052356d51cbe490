// Waiting for another process of this host: a short spin, then the core is offered to others between looks,
// since ranks may be more than cores and a neighbour may have work.
#pragma once

#include <sched.h>

#include "superstep/base/threads/pause.h"

namespace superstep::run {

template <class Ready>
void wait_until(Ready ready) {
  constexpr int spins = 2000;  // some 50 us
  for (int i = 0; !ready(); ++i)
    if (i < spins)
      pause_spinning();
    else
      sched_yield();
}

}  // namespace superstep::run
