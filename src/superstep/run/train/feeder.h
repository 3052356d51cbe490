// Batches made ahead: while one trains, threads of their own read, crop, augment and scale the next ones.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/run/task.h"

namespace superstep::run {

// The position of a training run within its data.
struct BatchAddress {
  std::uint64_t epoch = 0;
  std::int64_t batch = 0;  // within the epoch; the last incomplete batch is dropped
};

// The samples of every batch that one of several ranks trains on: rank `index` of `count` has an equal,
// contiguous part of the batch's order.
struct BatchPart {
  int index = 0, count = 1;
};

// How many batches are made ahead, and by whom. Their bits are the same whatever it is.
struct FeederWindow {
  int ahead = 0;     // 0: three of large batches, more of small ones
  int readers = 0;   // threads; 0: one, and of a task that reads files as it goes several
  double bytes = 0;  // that batches ahead may take, of a task that reads files as it goes; 0: no bound
};

// Throws Error (invalid_argument) where the training samples do not fill one: there is nothing to go on with.
std::int64_t batches_an_epoch(const Task& task, std::int64_t batch);

class Feeder {
 public:
  // Batches of `batch` samples from `start` on, epoch after epoch. `prototypes` has an empty tensor of every
  // input's type, of this part's size. Throws what batches_an_epoch() throws.
  Feeder(const Task& task, std::vector<Tensor> prototypes, std::int64_t batch, std::uint64_t seed,
         bool augment, BatchAddress start, BatchPart part = {}, FeederWindow window = {});
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  std::int64_t batches_an_epoch() const { return batches_; }
  // The next batch, in order; rethrows what went wrong while making it. Throws Error (interrupted) when
  // Ctrl-C comes while it waits.
  std::vector<Tensor> next();
  // The same where it is there already; empty where it would have to be waited for, or went wrong.
  std::vector<Tensor> next_if_ready();
  // Seconds the caller has waited for batches so far: zero when data keep up.
  double seconds_waited() const { return waited_; }

 private:
  using Batch = std::vector<Tensor>;
  // A batch that a thread has taken on.
  struct Claim {
    std::int64_t number = 0;  // counted from the first
    std::uint64_t epoch = 0;
    std::vector<std::int64_t> samples;
  };
  void produce();
  std::optional<Claim> claim();
  void make(const Claim& claim);
  Batch made(const Claim& claim) const;
  void take();
  void take_ready();
  Batch first_taken();
  void stop();

  const Task& task_;
  std::vector<Tensor> prototypes_;
  std::int64_t batch_, batches_;
  std::uint64_t seed_;
  bool augment_;
  BatchPart part_;
  data::ForcedOrder forced_;
  int readers_ = 1;
  std::size_t ahead_ = 1;
  double waited_ = 0;
  // The caller's: half of what may be ready is handed over at a time, for two threads that wake each other
  // take longer over it than a small model over its step.
  std::deque<Batch> taken_;

  std::mutex mutex_;
  std::condition_variable changed_;
  BatchAddress at_;                      // of the next claim
  std::vector<std::int64_t> order_;      // of its epoch
  std::int64_t claimed_ = 0;             // batches
  std::int64_t handed_ = 0;              // those that the caller has, and has had
  std::map<std::int64_t, Batch> ready_;  // by number
  std::map<std::int64_t, std::exception_ptr> errors_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace superstep::run
