#include "superstep/run/train/feeder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/own_threads.h"

namespace superstep::run {
namespace {

// Batches ahead of a size, so that they take a quarter of a megabyte: chosen.
constexpr std::size_t bytes_ahead = 1 << 18, fewest_ahead = 3, most_ahead = 64;

// Threads that wait for disks cost little, those that unpack what a processor has to spare: half of these,
// within bounds that are chosen.
constexpr int fewest_readers = 2, most_readers = 8;

std::size_t bytes_of(const std::vector<Tensor>& prototypes) {
  std::size_t bytes = 1;
  for (const Tensor& prototype : prototypes) bytes += prototype.byte_count();
  return bytes;
}

int readers_of(const Task& task, int asked) {
  if (asked > 0) return asked;
  if (!task.reads_as_it_goes()) return 1;
  return std::clamp(available_processors() / 2, fewest_readers, most_readers);
}

// Beside the batches that are ready there are those in the hands of the readers (with the rows that they are
// made of) and of the caller: half of what is ready, and one.
std::size_t ahead_of(const std::vector<Tensor>& prototypes, const Task& task, int readers,
                     const FeederWindow& window) {
  const std::size_t bytes = bytes_of(prototypes);
  std::size_t ahead = std::clamp(bytes_ahead / bytes, fewest_ahead, most_ahead);
  if (task.reads_as_it_goes()) ahead = std::max(ahead, 2 * static_cast<std::size_t>(readers));
  if (!task.reads_as_it_goes() || window.bytes <= 0) return ahead;
  const double batches = window.bytes / static_cast<double>(bytes) - 2.0 * readers - 1;
  return static_cast<std::size_t>(std::clamp(batches / 1.5, 1.0, static_cast<double>(ahead)));
}

constexpr auto poll = std::chrono::milliseconds(50);

}  // namespace

std::int64_t batches_an_epoch(const Task& task, std::int64_t batch) {
  const std::int64_t batches = task.training_count() / batch;
  if (batches < 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the {} training samples do not fill one batch of {}", task.training_count(), batch),
        "--batch");
  return batches;
}

Feeder::Feeder(const Task& task, std::vector<Tensor> prototypes, std::int64_t batch, std::uint64_t seed,
               bool augment, BatchAddress start, BatchPart part, FeederWindow window)
    : task_(task),
      prototypes_(std::move(prototypes)),
      batch_(batch),
      batches_(run::batches_an_epoch(task, batch)),
      seed_(seed),
      augment_(augment),
      part_(part),
      forced_(task.forced_order()),
      readers_(readers_of(task, window.readers)),
      ahead_(window.ahead > 0 ? static_cast<std::size_t>(window.ahead)
                              : ahead_of(prototypes_, task, readers_, window)),
      at_(start) {
  try {
    for (int i = 0; i < readers_; ++i) threads_.push_back(start_thread([this] { produce(); }));
  } catch (...) {
    stop();
    throw;
  }
}

Feeder::~Feeder() { stop(); }

void Feeder::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The next batch that nobody has taken on, when there is room for it; nothing when there will be no more.
std::optional<Feeder::Claim> Feeder::claim() {
  std::unique_lock lock(mutex_);
  const auto room = [&] { return claimed_ - handed_ < static_cast<std::int64_t>(ahead_) + readers_; };
  changed_.wait(lock, [&] { return stopping_ || !errors_.empty() || room(); });
  if (stopping_ || !errors_.empty()) return {};
  if (at_.batch >= batches_) at_ = {at_.epoch + 1, 0};
  if (order_.empty() || at_.batch == 0)
    order_ = epoch_order(task_.training_count(), seed_, at_.epoch, forced_);
  const std::int64_t rows = batch_ / part_.count;
  const auto first = order_.begin() + at_.batch * batch_ + part_.index * rows;
  Claim claimed{.number = claimed_++, .epoch = at_.epoch, .samples = {first, first + rows}};
  ++at_.batch;
  return claimed;
}

Feeder::Batch Feeder::made(const Claim& claim) const {
  Batch tensors;
  for (const Tensor& prototype : prototypes_) tensors.emplace_back(prototype.type(), prototype.shape());
  task_.fill(claim.samples, claim.epoch, augment_, tensors);
  return tensors;
}

// What goes wrong before a batch is taken on (no memory for an order) is told in the place of the next one.
void Feeder::produce() {
  try {
    while (const std::optional<Claim> claimed = claim()) make(*claimed);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    errors_[claimed_] = std::current_exception();
    changed_.notify_all();
  }
}

void Feeder::make(const Claim& claim) {
  Batch batch;
  std::exception_ptr error;
  try {
    batch = made(claim);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (error)
    errors_[claim.number] = error;
  else
    ready_[claim.number] = std::move(batch);
  changed_.notify_all();
}

// Batches come in their order; one that could not be made is told in its place.
void Feeder::take() {
  const auto begun = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const auto there = [&] { return ready_.contains(handed_) || errors_.contains(handed_); };
  while (!changed_.wait_for(lock, poll, there))
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while waiting for data");
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (!ready_.contains(handed_)) std::rethrow_exception(errors_.at(handed_));
  take_ready();
}

// With the lock held.
void Feeder::take_ready() {
  const std::size_t most = std::max<std::size_t>(1, ahead_ / 2);
  for (auto next = ready_.find(handed_); next != ready_.end() && taken_.size() < most;
       next = ready_.find(handed_)) {
    taken_.push_back(std::move(next->second));
    ready_.erase(next);
    ++handed_;
  }
  changed_.notify_all();
}

Feeder::Batch Feeder::first_taken() {
  Batch tensors = std::move(taken_.front());
  taken_.pop_front();
  return tensors;
}

std::vector<Tensor> Feeder::next() {
  if (taken_.empty()) take();
  return first_taken();
}

std::vector<Tensor> Feeder::next_if_ready() {
  if (taken_.empty()) {
    const std::lock_guard lock(mutex_);
    take_ready();
  }
  return taken_.empty() ? Batch() : first_taken();
}

}  // namespace superstep::run
