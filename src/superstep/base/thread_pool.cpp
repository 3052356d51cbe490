#include "superstep/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace superstep {
namespace {

// Long enough to bridge the gap between two parallel steps of a plan, short enough not to starve a
// neighbour: a thread that finds nothing to do for this long gives its core back.
constexpr auto spin_time = std::chrono::microseconds(50);

template <class Ready>
bool spin_until(Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

}  // namespace

struct ThreadPool::Job {
  FunctionRef<void(std::int64_t, int)> body;
  std::int64_t items;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int64_t> done{0};
  std::mutex error_mutex;
  std::exception_ptr error;
};

ThreadPool::ThreadPool(int threads) {
  for (int worker = 1; worker < threads; ++worker)
    workers_.emplace_back([this, worker] { worker_main(worker); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::claim_items(Job& job, int worker) {
  for (;;) {
    const std::int64_t item = job.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= job.items) return;
    try {
      job.body(item, worker);
      job.done.fetch_add(1, std::memory_order_release);
    } catch (...) {
      std::lock_guard lock(job.error_mutex);
      if (!job.error) job.error = std::current_exception();
      const std::int64_t claimed = std::min(job.next.exchange(job.items), job.items);
      job.done.fetch_add(1 + job.items - claimed, std::memory_order_release);  // this one, and all skipped
    }
  }
}

void ThreadPool::worker_main(int worker) {
  std::uint64_t seen = 0;
  for (;;) {
    spin_until([&] { return generation_.load(std::memory_order_acquire) != seen; });
    Job* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      seen = generation_.load();
      if (stopping_) return;
      job = job_.load();
      if (!job) continue;  // finished before this worker woke
      ++inside_;
    }
    claim_items(*job, worker);
    {
      std::lock_guard lock(mutex_);
      --inside_;
    }
    finished_.notify_one();
  }
}

void ThreadPool::parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body) {
  if (items <= 0) return;
  if (workers_.empty() || items == 1) {
    for (std::int64_t item = 0; item < items; ++item) body(item, 0);
    return;
  }
  Job job{body, items};
  {
    std::lock_guard lock(mutex_);
    job_.store(&job);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  claim_items(job, 0);
  spin_until([&] { return job.done.load(std::memory_order_acquire) >= items; });
  {
    // `job` lives on this stack: no worker may still hold it when we return.
    std::unique_lock lock(mutex_);
    job_.store(nullptr);
    finished_.wait(lock, [&] { return inside_ == 0 && job.done.load() >= items; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace superstep
