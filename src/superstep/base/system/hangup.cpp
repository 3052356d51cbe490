#include "superstep/base/system/hangup.h"

#include <atomic>
#include <csignal>

namespace superstep {
namespace {

std::atomic<bool> hung_up = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void on_hangup(int) { hung_up.store(true, std::memory_order_relaxed); }

}  // namespace

void watch_for_hangups() { std::signal(SIGHUP, on_hangup); }

bool take_hangup() { return hung_up.exchange(false, std::memory_order_relaxed); }

}  // namespace superstep
