#include "superstep/target/cpu/kernels/core/shared_phases.h"

#include <algorithm>
#include <new>
#include <thread>

#include "superstep/base/threads/pause.h"

namespace superstep::kernels {

namespace {

// Pauses before what another member has left is taken, some 1 us, and before the core is given to whoever
// else wants it.
constexpr int patience = 64, longest_spin = 4096;

}  // namespace

struct SharedPhases::Member {
  int number;
  std::int64_t phase = 0;
  Neighbour others[most_members] = {};
};

SharedPhases& SharedPhases::at(void* memory) {
  constexpr auto alignment = static_cast<std::uintptr_t>(alignof(SharedPhases));
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return *reinterpret_cast<SharedPhases*>((address + alignment - 1) / alignment * alignment);
}

void SharedPhases::begin(void* memory, std::int64_t items, int members) {
  static_assert(sizeof(SharedPhases) + alignof(SharedPhases) <= bytes);
  auto* phases = new (&at(memory)) SharedPhases();
  phases->items_ = items;
  phases->members_ = static_cast<int>(std::clamp<std::int64_t>(members, 1, most_members));
}

bool SharedPhases::is_complete(std::int64_t phase) const {
  std::int64_t done = 0;
  for (int i = 0; i < members_; ++i) done += shares_[i].done.load(std::memory_order_acquire);
  return done >= (phase + 1) * items_;
}

// The items of a share, where nobody has begun with it in this phase: claimed and reported done all at once,
// for a line of cache that another core has seen costs as much as some items.
void SharedPhases::take(Member& member, int share, Body body) {
  // A member that comes late finds claims of later phases here.
  std::int64_t phase = member.phase;
  std::atomic<std::int64_t>& claimed = shares_[share].claimed;
  if (claimed.load(std::memory_order_relaxed) > phase ||
      !claimed.compare_exchange_strong(phase, phase + 1, std::memory_order_relaxed))
    return;
  const std::int64_t begin = begin_of(share), size = begin_of(share + 1) - begin;
  for (std::int64_t i = 0; i < size; ++i)
    body(member.phase, begin + (member.phase % 2 == 0 ? i : size - 1 - i));
  std::atomic<std::int64_t>& done = shares_[member.number].done;
  done.store(done.load(std::memory_order_relaxed) + size, std::memory_order_release);
}

// Until the phase is complete; in the last one, until all of it is begun.
void SharedPhases::wait(Member& member, bool is_last, Body body) {
  for (int spins = 0; !is_complete(member.phase); spins = std::min(spins + 1, longest_spin)) {
    if (spins == 0 || spins == patience) {
      for (int i = 0; i < members_; ++i) {
        Neighbour& other = member.others[i];
        const std::int64_t done = shares_[i].done.load(std::memory_order_relaxed);
        other.works = spins == 0 && (other.works || done != other.done);
        other.done = done;
        if (!other.works) take(member, i, body);
      }
      if (is_last && spins == patience) return;
    }
    if (spins < longest_spin)
      pause_spinning();
    else
      std::this_thread::yield();
  }
}

void SharedPhases::join(int member, std::int64_t phases, Body body) {
  Member me{.number = member};
  if (member >= members_) return;
  for (; me.phase < phases; ++me.phase) {
    take(me, member, body);
    wait(me, me.phase + 1 == phases, body);
  }
}

int members_of_phase(double bytes, double flops, std::int64_t items) {
  constexpr double bytes_of_cache = 235e9, flops_of_core = 300e9, least = 2e-6;
  if (std::max(bytes / bytes_of_cache, flops / flops_of_core) < least) return 1;
  return static_cast<int>(std::min<std::int64_t>(items, SharedPhases::most_members));
}

}  // namespace superstep::kernels
