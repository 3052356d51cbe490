// The pool of threads that all parallel work runs on.
//
// Work items are claimed from a shared counter, and the calling thread claims too: when another process has
// taken a core, the threads that do run take the items that the sleeping one would have had, and the caller
// can finish alone. Idle workers spin for a bounded time, then sleep.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "superstep/base/function_ref.h"

namespace superstep {

// Pools of the same size that are alive at the same time share their threads, so that the idle ones of one do
// not spin on the cores that another one needs.
class ThreadPool {
 public:
  // `threads` counts the caller: ThreadPool(1) starts no thread. At least 1. Throws Error (io) where the
  // system does not start as many.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(item, worker) once for every item in [0, items), worker in [0, threads()). Returns when all
  // are done; the first exception thrown by a body is rethrown here and the items not yet claimed are
  // skipped. Which worker gets which item is not determined: write results by item. Not re-entrant: one
  // call of a pool at a time, none from inside a body. While another pool has the threads, the caller does
  // its items alone, as worker 0.
  //
  // At most `threads` threads are called, numbers below it: for work that many would take longer to meet for
  // than to do.
  static constexpr int all = std::numeric_limits<int>::max();
  void parallel_for(std::int64_t items, FunctionRef<void(std::int64_t item, int worker)> body,
                    int threads = all);

 private:
  class Crew;
  int threads_;
  std::shared_ptr<Crew> crew_;  // none where the caller is the only thread
};

// Logical processors this process may use: of its affinity mask, and whole ones of its container's limit
// (base/threads/processors.h); not the whole machine.
int available_processors();

}  // namespace superstep
