// Work of many short phases that depend on each other, shared by threads from inside one kernel.
//
// Every phase has the same items; one begins when all items of the one before are done. Each thread has a
// share of them, the same one in every phase, so that what it reads stays in the caches of its core. It waits
// for the others by spinning a moment, and then takes the shares that they have not begun with: a thread that
// comes late, or not at all, holds nobody up, and one whose core is taken by another process holds the others
// up for the share that it has begun with.
// Handing a phase over costs two or three times what a line of cache takes from one core to another: 0.1 us
// within a complex of cores, 0.25 us beyond.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "superstep/base/function_ref.h"

namespace superstep::kernels {

// Threads that can share phases of so many items that read `bytes` of weights and take `flops`: one where a
// phase takes less than 2 us, for handing it over costs 0.2 us between near cores and 1 us between far ones.
int members_of_phase(double bytes, double flops, std::int64_t items);

class SharedPhases {
 public:
  static constexpr int most_members = 32;
  static constexpr std::size_t bytes = 4 * 64 * (most_members + 1);

  // Lays the state of one run into `memory`: `bytes` of it, which all members see.
  static void begin(void* memory, std::int64_t items, int members);
  static SharedPhases& at(void* memory);

  // Takes part as `member` in [0, members). Every member once, at the same time or one after the other in any
  // order. body(phase, item); a share goes through its items there and back again, from phase to phase. When
  // a call returns, no item is left that nobody has begun; when all have returned, all are done.
  void join(int member, std::int64_t phases, FunctionRef<void(std::int64_t phase, std::int64_t item)> body);

 private:
  SharedPhases() = default;
  // Lines of cache two by two: a prefetcher may fetch the neighbour of a line that is polled.
  struct Share {
    alignas(128) std::atomic<std::int64_t> claimed{0};  // phases in which somebody took this share
    alignas(128) std::atomic<std::int64_t> done{0};     // items that this member did, of any share
  };
  // What a member knows of another one: whether it did anything since it was last found missing.
  struct Neighbour {
    std::int64_t done = 0;
    bool works = false;
  };
  using Body = FunctionRef<void(std::int64_t phase, std::int64_t item)>;
  struct Member;

  std::int64_t begin_of(int share) const { return items_ * share / members_; }
  bool is_complete(std::int64_t phase) const;
  void take(Member& member, int share, Body body);
  void wait(Member& member, bool is_last, Body body);

  std::int64_t items_ = 1;
  int members_ = 1;
  Share shares_[most_members];
};

}  // namespace superstep::kernels
