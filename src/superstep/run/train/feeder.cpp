#include "superstep/run/train/feeder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/threads/own_threads.h"

namespace superstep::run {
namespace {

constexpr std::uint32_t order_purpose = 0x0bde;  // separates the order from every other use of the seed

// Batches ahead of a size, so that they take a quarter of a megabyte: chosen.
constexpr std::size_t bytes_ahead = 1 << 18, fewest_ahead = 3, most_ahead = 64;

std::size_t ahead_of(const std::vector<Tensor>& prototypes) {
  std::size_t bytes = 1;
  for (const Tensor& prototype : prototypes) bytes += prototype.byte_count();
  return std::clamp(bytes_ahead / bytes, fewest_ahead, most_ahead);
}

constexpr auto poll = std::chrono::milliseconds(50);

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  RandomStream random(seed, epoch, order_purpose);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

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
               bool augment, BatchAddress start, BatchPart part, int ahead)
    : task_(task),
      prototypes_(std::move(prototypes)),
      batch_(batch),
      batches_(run::batches_an_epoch(task, batch)),
      seed_(seed),
      augment_(augment),
      at_(start),
      part_(part),
      ahead_(ahead > 0 ? static_cast<std::size_t>(ahead) : ahead_of(prototypes_)) {
  thread_ = start_thread([this] { produce(); });
}

Feeder::~Feeder() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Feeder::produce() {
  try {
    for (;; ++at_.epoch, at_.batch = 0) {
      const std::vector<std::int64_t> order = epoch_order(task_.training_count(), seed_, at_.epoch);
      for (; at_.batch < batches_; ++at_.batch) {
        std::vector<Tensor> tensors;
        for (const Tensor& prototype : prototypes_) tensors.emplace_back(prototype.type(), prototype.shape());
        const std::int64_t rows = batch_ / part_.count;
        const std::span indices(order.begin() + at_.batch * batch_ + part_.index * rows,
                                static_cast<std::size_t>(rows));
        task_.fill(indices, at_.epoch, augment_, tensors);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || ready_.size() < ahead_; });
        if (stopping_) return;
        ready_.push_back(std::move(tensors));
        changed_.notify_all();
      }
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

void Feeder::take() {
  const auto begun = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const auto there = [&] { return error_ || !ready_.empty(); };
  while (!changed_.wait_for(lock, poll, there))
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while waiting for data");
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (ready_.empty()) std::rethrow_exception(error_);
  const std::size_t most = std::max<std::size_t>(1, ahead_ / 2);
  for (; !ready_.empty() && taken_.size() < most; ready_.pop_front())
    taken_.push_back(std::move(ready_.front()));
  changed_.notify_all();
}

std::vector<Tensor> Feeder::next() {
  if (taken_.empty()) take();
  std::vector<Tensor> tensors = std::move(taken_.front());
  taken_.pop_front();
  return tensors;
}

}  // namespace superstep::run
