// Batches made ahead: while one trains, a thread of its own crops, augments and scales the next ones.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
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

// Throws Error (invalid_argument) where the training samples do not fill one: there is nothing to go on with.
std::int64_t batches_an_epoch(const Task& task, std::int64_t batch);

class Feeder {
 public:
  // Batches of `batch` samples from `start` on, epoch after epoch. `prototypes` has an empty tensor of every
  // input's type, of this part's size. `ahead` batches are kept ready; 0: three of large ones, more of small
  // ones. Throws what batches_an_epoch() throws.
  Feeder(const Task& task, std::vector<Tensor> prototypes, std::int64_t batch, std::uint64_t seed,
         bool augment, BatchAddress start, BatchPart part = {}, int ahead = 0);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  std::int64_t batches_an_epoch() const { return batches_; }
  // The next batch, in order; rethrows what went wrong while making it. Throws Error (interrupted) when
  // Ctrl-C comes while it waits.
  std::vector<Tensor> next();
  // Seconds the caller has waited for batches so far: zero when data keep up.
  double seconds_waited() const { return waited_; }

 private:
  void produce();
  void take();

  const Task& task_;
  std::vector<Tensor> prototypes_;
  std::int64_t batch_, batches_;
  std::uint64_t seed_;
  bool augment_;
  BatchAddress at_;
  BatchPart part_;
  std::size_t ahead_;
  double waited_ = 0;
  // The caller's: half of what may be ready is handed over at a time, for two threads that wake each other
  // take longer over it than a small model over its step.
  std::deque<std::vector<Tensor>> taken_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Tensor>> ready_;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace superstep::run
