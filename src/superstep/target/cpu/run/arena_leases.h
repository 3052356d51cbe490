// The arenas of an executable, lent to what is worked on.
//
// A group of micro-batches borrows an arena for as long as it lasts. So there are as many arenas as groups
// that can be in flight, however many threads there are, and no thread has one by its number. A thread gets
// the arena that it had last where that is free: its lines are in that core's cache, and its pages in the
// memory next to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "superstep/target/cpu/run/memory.h"

namespace superstep::target::cpu {

class ArenaLeases {
 public:
  // `arenas` of `arena_bytes`, for threads with numbers below `threads`; both at least 1.
  ArenaLeases(std::size_t arenas, std::size_t arena_bytes, std::size_t threads);

  class Lease {
   public:
    Lease(ArenaLeases& leases, std::size_t number) : leases_(leases), number_(number) {}
    ~Lease() { leases_.give_back(number_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    std::byte* memory() const { return leases_.at(number_); }

   private:
    ArenaLeases& leases_;
    std::size_t number_;
  };

  // By several threads at once, each with its own number, as long as no more leases last than there are
  // arenas.
  Lease lend(std::size_t thread);
  // By number, where all are used in an order of their own and none is lent.
  std::byte* at(std::size_t number) const { return memory_.data() + number * arena_bytes_; }
  std::size_t count() const { return taken_.size(); }
  void release() { memory_.release(); }

 private:
  // A line of cache each: they are written by one thread most of the time.
  struct alignas(64) Flag {
    std::atomic<bool> set{false};
  };
  struct alignas(64) Last {
    std::size_t arena = 0;
  };

  void give_back(std::size_t number) { taken_[number].set.store(false, std::memory_order_release); }

  std::size_t arena_bytes_;
  Memory memory_;  // one arena after the other
  std::vector<Flag> taken_;
  std::vector<Last> last_;  // by thread
};

}  // namespace superstep::target::cpu
