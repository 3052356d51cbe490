#include "superstep/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/base/threads/pause.h"
#include "superstep/base/threads/sleeping.h"
#include "superstep/base/threads/thread_place.h"

namespace superstep {
namespace {

// Long enough to bridge the gap between two parallel steps of a plan, short enough not to starve a
// neighbour: a thread that finds nothing to do for this long gives its core back. At once where there are
// more threads than processors, for then it keeps it from one that has something to do.
std::chrono::microseconds spin_time(int threads) {
  return std::chrono::microseconds(threads <= available_processors() ? 100 : 0);
}

using Clock = std::chrono::steady_clock;

// Who waits for another thread sleeps for so long at first, and longer and longer, before it looks whether
// that one has a processor; one that had it for less than this share of the time has not. Chosen: a look
// takes some microseconds.
constexpr std::chrono::microseconds first_look{100}, longest_look{1000};
constexpr int share_of_a_look = 5;
// So many workers watch over the caller. Chosen: one of them may be late itself.
constexpr int watchers = 2;

template <class Ready>
bool spin_until(Clock::time_point deadline, Ready ready) {
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause_spinning();
    }
  } while (Clock::now() < deadline);
  return ready();
}

void run_alone(std::int64_t items, FunctionRef<void(std::int64_t, int)> body) {
  for (std::int64_t item = 0; item < items; ++item) body(item, 0);
}

// Threads that one thread wakes from their sleep, which takes it a microsecond or more each; they wake the
// next.
constexpr int woken_by_one = 8;

// Once a run of the program: pools are made by the dozen.
void tell_of_missing(int wanted, std::size_t started, const Error& error) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  tell("superstep: note: " + std::to_string(started) + " of " + std::to_string(wanted) +
       " threads could be started (" + error.message() + "); the work goes on with these\n");
}

}  // namespace

// The threads of pools of one size.
class ThreadPool::Crew {
 public:
  explicit Crew(int threads);
  ~Crew() { dismiss(); }
  static std::shared_ptr<Crew> of_size(int threads);

  void parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body, int threads);

 private:
  struct Job;
  void worker_main(int worker);
  void sleep(int worker, std::uint32_t seen);
  class Look;
  template <class Awaited>
  bool spin_beside(int thread, Awaited awaited);
  template <class Awaited>
  void wait_for_thread(int thread, std::atomic<std::uint32_t>& word, std::uint32_t value, Awaited awaited);
  void wait_for_caller(int worker, std::uint32_t seen);
  void wake(int worker);
  void wake_next(int worker, int called);
  void deal(std::int64_t items, int called);
  void claim_items(Job& job, int worker);
  void wait_for_workers();
  void dismiss();

  // The items that a thread takes first, one by one; when none is left it goes on with those of the others.
  // So a thread mostly writes to a line of its own, and works on the part of the data that it worked on
  // before.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  // In inside_: the thread is, and the caller asks to be woken when it is no more.
  static constexpr std::uint32_t awaited_inside = 2;

  // A word of each thread on a line of its own: who reads it mostly finds it in its own cache.
  struct alignas(64) Word {
    std::atomic<std::uint32_t> set{0};
  };

  std::chrono::microseconds spin_;
  std::vector<Share> shares_;        // one a thread
  std::vector<Word> asleep_;         // by thread
  std::vector<Word> inside_;         // by thread: it may hold job_
  std::vector<ThreadPlace> places_;  // by thread
  std::vector<std::thread> workers_;
  // Each on a line of its own: they are written from all sides.
  alignas(64) std::atomic<bool> busy_{false};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  std::atomic<int> called_{0};  // threads with a number below this take part
  std::atomic<Job*> job_{nullptr};
  std::atomic<bool> stopping_{false};
};

struct ThreadPool::Crew::Job {
  FunctionRef<void(std::int64_t, int)> body;
  int called;
  std::mutex error_mutex;
  std::exception_ptr error;
};

// Where the system does not give all threads, the work goes on with those there are: any of them takes any
// item.
ThreadPool::Crew::Crew(int threads)
    : spin_(spin_time(threads)),
      shares_(static_cast<std::size_t>(threads)),
      asleep_(static_cast<std::size_t>(threads)),
      inside_(static_cast<std::size_t>(threads)),
      places_(static_cast<std::size_t>(threads)) {
  try {
    for (int worker = 1; worker < threads; ++worker)
      workers_.push_back(start_thread([this, worker] { worker_main(worker); }));
  } catch (const Error& error) {
    tell_of_missing(threads, workers_.size() + 1, error);
  }
}

void ThreadPool::Crew::dismiss() {
  stopping_.store(true);
  generation_.fetch_add(1);
  for (int worker = 1; worker <= static_cast<int>(workers_.size()); ++worker) wake(worker);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

std::shared_ptr<ThreadPool::Crew> ThreadPool::Crew::of_size(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Crew>> crews;
  std::lock_guard lock(mutex);
  std::shared_ptr<Crew> crew = crews[threads].lock();
  if (!crew) crews[threads] = crew = std::make_shared<Crew>(threads);
  return crew;
}

// The caller, who is there first, has something to do where there are fewer items than threads.
void ThreadPool::Crew::deal(std::int64_t items, int called) {
  const auto first_of = [&](std::int64_t thread) { return (items * thread + called - 1) / called; };
  for (int thread = 0; thread < called; ++thread) {
    Share& share = shares_[static_cast<std::size_t>(thread)];
    share.next.store(first_of(thread), std::memory_order_relaxed);
    share.end = first_of(thread + 1);
  }
}

void ThreadPool::Crew::claim_items(Job& job, int worker) {
  const auto called = static_cast<std::size_t>(job.called);
  places_[static_cast<std::size_t>(worker)].enter();
  try {
    for (std::size_t k = 0; k < called; ++k) {
      Share& share = shares_[(static_cast<std::size_t>(worker) + k) % called];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const std::int64_t item = share.next.fetch_add(1, std::memory_order_relaxed);
        if (item < share.end) job.body(item, worker);
      }
    }
  } catch (...) {
    std::lock_guard lock(job.error_mutex);
    if (!job.error) job.error = std::current_exception();
    for (std::size_t k = 0; k < called; ++k) shares_[k].next.store(shares_[k].end, std::memory_order_relaxed);
  }
}

// A worker says that it is inside before it looks for the job, and the caller takes the job away before it
// looks whether anyone is inside: so either the worker finds nothing or the caller waits for it. Who is not
// called neither writes where the others look nor keeps spinning.
void ThreadPool::Crew::worker_main(int worker) {
  std::uint32_t seen = 0;
  bool took_part = false;
  Clock::time_point idle = Clock::now() + spin_;
  std::atomic<std::uint32_t>& inside = inside_[static_cast<std::size_t>(worker)].set;
  while (!stopping_.load()) {
    const bool watches = took_part && worker <= watchers && spin_.count() > 0;
    if (watches) spin_beside(0, [&] { return generation_.load() == seen && job_.load() != nullptr; });
    if (!spin_until(idle, [&] { return generation_.load() != seen; })) {
      if (watches) wait_for_caller(worker, seen);
      sleep(worker, seen);
    }
    const std::uint32_t generation = generation_.load();
    if (generation == seen) continue;
    seen = generation;
    took_part = worker < called_.load();
    if (!took_part) continue;
    inside.store(1);
    if (Job* job = job_.load(); job && worker < job->called) {
      wake_next(worker, job->called);
      claim_items(*job, worker);
    }
    if (inside.exchange(0) == awaited_inside) wake_one(inside);
    idle = Clock::now() + spin_;
  }
}

// A worker says that it sleeps before it looks at the generation for the last time, and a caller changes that
// before it looks who sleeps: so either the worker stays awake or it is woken.
void ThreadPool::Crew::sleep(int worker, std::uint32_t seen) {
  std::atomic<std::uint32_t>& asleep = asleep_[static_cast<std::size_t>(worker)].set;
  asleep.store(1);
  while (generation_.load() == seen && !stopping_.load() && asleep.load() == 1) sleep_while(asleep, 1);
  asleep.store(0);
}

// Whether a thread has had a processor since this began.
class ThreadPool::Crew::Look {
 public:
  explicit Look(ThreadPlace& place)
      : place_(place), exchanges_(place.exchanges()), begun_(Clock::now()), had_(place.processor_time()) {}
  // One that has lost its processor to another process gets this thread's, which has nothing to do with it.
  void exchange_if_late(std::chrono::microseconds at_least) const {
    const auto passed = Clock::now() - begun_;
    if (passed >= at_least && place_.exchanges() == exchanges_ &&
        place_.processor_time() - had_ < passed / share_of_a_look)
      place_.exchange_with_caller();
  }

 private:
  ThreadPlace& place_;
  std::uint32_t exchanges_;
  Clock::time_point begun_;
  std::chrono::nanoseconds had_;
};

// Spins while the thread is awaited; in the second half somebody looks. Before any sleep: a processor that
// falls idle makes the system put both threads on it. Gives whether it is awaited still.
template <class Awaited>
bool ThreadPool::Crew::spin_beside(int thread, Awaited awaited) {
  const auto ready = [&] { return !awaited(); };
  if (spin_until(Clock::now() + spin_ / 2, ready)) return false;
  if (spin_.count() == 0) return true;
  const Look look(places_[static_cast<std::size_t>(thread)]);
  if (spin_until(Clock::now() + spin_ / 2, ready)) return false;
  look.exchange_if_late(spin_ / 2);
  return awaited();
}

// Sleeps on `word` while it has this value and the thread is awaited. Where there are more threads than
// processors all of them lose theirs now and then.
template <class Awaited>
void ThreadPool::Crew::wait_for_thread(int thread, std::atomic<std::uint32_t>& word, std::uint32_t value,
                                       Awaited awaited) {
  if (spin_.count() == 0)
    while (awaited()) sleep_while(word, value);
  for (std::chrono::microseconds time = first_look; awaited(); time = std::min(2 * time, longest_look)) {
    const Look look(places_[static_cast<std::size_t>(thread)]);
    sleep_while(word, value, time);
    if (awaited()) look.exchange_if_late(time);
  }
}

// Who has nothing left to do in a call, for as long as the caller has.
void ThreadPool::Crew::wait_for_caller(int worker, std::uint32_t seen) {
  std::atomic<std::uint32_t>& asleep = asleep_[static_cast<std::size_t>(worker)].set;
  asleep.store(1);
  wait_for_thread(0, asleep, 1, [&] {
    return asleep.load() == 1 && generation_.load() == seen && job_.load() != nullptr && !stopping_.load();
  });
  asleep.store(0);
}

void ThreadPool::Crew::wake(int worker) {
  std::atomic<std::uint32_t>& asleep = asleep_[static_cast<std::size_t>(worker)].set;
  if (asleep.load() == 0) return;
  asleep.store(0);
  wake_one(asleep);
}

void ThreadPool::Crew::wake_next(int worker, int called) {
  const int first = woken_by_one * worker + 1;
  for (int next = first; next < std::min(called, first + woken_by_one); ++next) wake(next);
}

void ThreadPool::Crew::wait_for_workers() {
  for (std::size_t thread = 1; thread < inside_.size(); ++thread) {
    std::atomic<std::uint32_t>& inside = inside_[thread].set;
    if (inside.load() == 0) continue;
    const auto awaited = [&] { return inside.load() != 0; };
    if (!spin_beside(static_cast<int>(thread), awaited)) continue;
    std::uint32_t still = 1;
    inside.compare_exchange_strong(still, awaited_inside);
    wait_for_thread(static_cast<int>(thread), inside, awaited_inside, awaited);
  }
}

void ThreadPool::Crew::parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body,
                                    int threads) {
  if (busy_.exchange(true)) return run_alone(items, body);
  const int called = std::min(threads, static_cast<int>(shares_.size()));
  Job job{body, called, {}, {}};
  deal(items, called);
  called_.store(called);
  job_.store(&job);
  generation_.fetch_add(1);
  wake_next(0, called);
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

void ThreadPool::parallel_for(std::int64_t items, FunctionRef<void(std::int64_t, int)> body, int threads) {
  if (crew_ && items > 1 && threads > 1) return crew_->parallel_for(items, body, threads);
  run_alone(items, body);
}

}  // namespace superstep
