// The queue before a model's workers: joins what waits into batches, within bounds of rows and bytes, and
// keeps the account of all of it.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "superstep/edge/service/job.h"

namespace superstep::edge {

enum class QueueFull {
  refuse,       // the newest goes
  drop_oldest,  // the oldest go until the newest fits
  wait,         // who submits waits: the back-pressure of a stream
};

struct BatcherSettings {
  std::int64_t max_batch = 64;
  Nanoseconds max_delay{0};  // that an idle worker waits for more than what is there
  std::int64_t queue_rows = 4096;
  std::size_t queue_bytes = std::size_t{1} << 30;
  QueueFull when_full = QueueFull::refuse;
};

// Rows of one job that a worker computes.
struct Piece {
  JobPointer job;
  std::int64_t first = 0, count = 0;
};

struct Batch {
  std::vector<Piece> pieces;  // all of one version
  std::int64_t rows = 0;
  Clock::time_point taken;
};

// How long things took; one of each a request but for `compute`, which is one a batch.
struct ServiceTimes {
  Durations queue, compute, total;
  std::map<std::int64_t, Durations> by_rows;  // computing, by the rows of a batch
};

class Batcher {
 public:
  explicit Batcher(BatcherSettings settings) : settings_(settings) {}

  // False: it was refused (or the queue is closed), which is in the account, and `job` is not told. Waits
  // where the settings say so, unless `may_wait` forbids it.
  bool submit(const JobPointer& job, bool may_wait = false);
  // What never came so far as to be a job.
  void count_invalid();

  // The next batch; none when the queue is closed and empty. Tells jobs whose time is over.
  std::optional<Batch> take();
  // Tells the jobs that are done with it. `failure` empty: it was computed.
  void finish(const Batch& batch, const std::string& failure = {});

  // Nothing is taken in any more; what waits still is.
  void close();
  // Tells everything that waits that it will not be served.
  void abandon();
  // Waits until nothing waits or runs and all were told, or until `until`. True: so it is.
  bool wait_until_idle(Clock::time_point until);

  Account account() const;
  ServiceTimes times() const;
  const BatcherSettings& settings() const { return settings_; }

 private:
  struct Ended {
    JobPointer job;
    Outcome outcome;
  };
  bool fits(const Job& job) const;
  void make_room(const Job& job, std::vector<Ended>& ended);
  void leave_queue(Outcome outcome, std::vector<Ended>& ended);  // the front
  void drop_expired(std::vector<Ended>& ended);
  bool is_batch_ready(Clock::time_point now) const;
  Batch take_front();
  void end(const JobPointer& job, std::vector<Ended>& ended, Clock::time_point now);
  void tell(const std::vector<Ended>& ended);
  bool is_idle() const;

  const BatcherSettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable work_, room_, idle_;
  std::deque<JobPointer> queue_;
  std::int64_t queued_rows_ = 0;  // not yet taken
  std::size_t queued_bytes_ = 0;  // of jobs with rows not yet taken
  std::size_t telling_ = 0;       // of jobs that have ended, and whose `done` has not returned
  bool closed_ = false;
  Account account_;
  ServiceTimes times_;
};

}  // namespace superstep::edge
