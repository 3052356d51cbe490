#include "superstep/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "superstep/base/standard_streams.h"

namespace superstep {
namespace {

// Long enough to bridge the gap between two parallel steps of a plan, short enough not to starve a
// neighbour: a thread that finds nothing to do for this long gives its core back.
constexpr auto spin_time = std::chrono::microseconds(100);

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

void run_alone(std::int64_t items, FunctionRef<void(std::int64_t, int)> body) {
  for (std::int64_t item = 0; item < items; ++item) body(item, 0);
}

// Once a run of the program: pools are made by the dozen.
void tell_of_missing(int wanted, std::size_t started, const std::system_error& error) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  tell("superstep: note: " + std::to_string(started) + " of " + std::to_string(wanted) +
       " threads could be started (" + error.code().message() + "); the work goes on with these\n");
}

}  // namespace

// The threads of pools of one size.
class ThreadPool::Crew {
 public:
  explicit Crew(int threads);
  ~Crew();
  static std::shared_ptr<Crew> of_size(int threads);

  void parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body);

 private:
  struct Job;
  void worker_main(int worker);
  void claim_items(Job& job, int worker);
  void wait_for_workers();

  // The items that a thread takes first, one by one; when none is left it goes on with those of the others.
  // So a thread mostly writes to a line of its own, and works on the part of the data that it worked on
  // before.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  std::vector<Share> shares_;  // one a thread
  std::vector<std::thread> workers_;
  // Each on a line of its own: they are written from all sides.
  alignas(64) std::atomic<bool> busy_{false};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  std::atomic<Job*> job_{nullptr};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<std::int32_t> inside_{0};  // workers that may hold job_
};

struct ThreadPool::Crew::Job {
  FunctionRef<void(std::int64_t, int)> body;
  std::mutex error_mutex;
  std::exception_ptr error;
};

// Where the system does not give all threads, the work goes on with those there are: any of them takes any
// item.
ThreadPool::Crew::Crew(int threads) : shares_(static_cast<std::size_t>(threads)) {
  workers_.reserve(static_cast<std::size_t>(threads) - 1);
  try {
    for (int worker = 1; worker < threads; ++worker)
      workers_.emplace_back([this, worker] { worker_main(worker); });
  } catch (const std::system_error& error) {
    tell_of_missing(threads, workers_.size() + 1, error);
  }
}

ThreadPool::Crew::~Crew() {
  stopping_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::shared_ptr<ThreadPool::Crew> ThreadPool::Crew::of_size(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Crew>> crews;
  std::lock_guard lock(mutex);
  std::shared_ptr<Crew> crew = crews[threads].lock();
  if (!crew) crews[threads] = crew = std::make_shared<Crew>(threads);
  return crew;
}

void ThreadPool::Crew::claim_items(Job& job, int worker) {
  try {
    for (std::size_t k = 0; k < shares_.size(); ++k) {
      Share& share = shares_[(static_cast<std::size_t>(worker) + k) % shares_.size()];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const std::int64_t item = share.next.fetch_add(1, std::memory_order_relaxed);
        if (item < share.end) job.body(item, worker);
      }
    }
  } catch (...) {
    std::lock_guard lock(job.error_mutex);
    if (!job.error) job.error = std::current_exception();
    for (Share& share : shares_) share.next.store(share.end, std::memory_order_relaxed);
  }
}

// A worker says that it is inside before it looks for the job, and the caller takes the job away before it
// looks whether anyone is inside: so either the worker finds nothing or the caller waits for it.
void ThreadPool::Crew::worker_main(int worker) {
  std::uint32_t seen = 0;
  while (!stopping_.load()) {
    if (!spin_until([&] { return generation_.load() != seen; })) generation_.wait(seen);
    seen = generation_.load();
    inside_.fetch_add(1);
    if (Job* job = job_.load()) claim_items(*job, worker);
    if (inside_.fetch_sub(1) == 1) inside_.notify_one();
  }
}

void ThreadPool::Crew::wait_for_workers() {
  if (spin_until([&] { return inside_.load() == 0; })) return;
  for (std::int32_t inside = inside_.load(); inside != 0; inside = inside_.load()) inside_.wait(inside);
}

void ThreadPool::Crew::parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body) {
  if (busy_.exchange(true)) return run_alone(items, body);
  Job job{body, {}, {}};
  const auto count = static_cast<std::int64_t>(shares_.size());
  for (std::int64_t i = 0; i < count; ++i) {
    Share& share = shares_[static_cast<std::size_t>(i)];
    share.next.store(items * i / count, std::memory_order_relaxed);
    share.end = items * (i + 1) / count;
  }
  job_.store(&job);
  generation_.fetch_add(1);
  generation_.notify_all();
  claim_items(job, 0);
  job_.store(nullptr);
  wait_for_workers();  // `job` lives on this stack
  busy_.store(false);
  if (job.error) std::rethrow_exception(job.error);
}

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)) {
  if (threads_ > 1) crew_ = Crew::of_size(threads_);
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body) {
  if (crew_ && items > 1) return crew_->parallel_for(items, body);
  run_alone(items, body);
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace superstep
