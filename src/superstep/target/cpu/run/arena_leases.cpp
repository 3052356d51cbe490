#include "superstep/target/cpu/run/arena_leases.h"

namespace superstep::target::cpu {

ArenaLeases::ArenaLeases(std::size_t arenas, std::size_t arena_bytes, std::size_t threads)
    : arena_bytes_(arena_bytes), memory_(arenas * arena_bytes), taken_(arenas), last_(threads) {
  for (std::size_t thread = 0; thread < threads; ++thread) last_[thread].arena = thread * arenas / threads;
}

// One is free, for fewer leases last than there are arenas; another thread may take it and give back one that
// was passed over, hence the loop.
ArenaLeases::Lease ArenaLeases::lend(std::size_t thread) {
  std::size_t number = last_[thread].arena;
  while (taken_[number].set.exchange(true, std::memory_order_acquire)) number = (number + 1) % count();
  last_[thread].arena = number;
  return {*this, number};
}

}  // namespace superstep::target::cpu
