#include "superstep/run/ranks/shared/shared_means.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "superstep/base/stopwatch.h"
#include "superstep/run/ranks/shared/adding.h"
#include "superstep/run/ranks/shared/waiting.h"

namespace superstep::run {
namespace {

constexpr std::size_t line_bytes = 64, line_values = line_bytes / sizeof(float);
constexpr std::size_t block_values = 2048;  // added up at a time: stays in the first-level cache

using Flag = std::atomic<std::uint64_t>;

std::size_t in_lines(std::size_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

// A rank's segment: how many ranges it has made (in all rounds), the round in which each range was last
// ready, and the values. Every rank makes one piece of every range and writes it to all segments.
class SharedMeans : public RangeMeans {
 public:
  SharedMeans(std::unique_ptr<SharedSegments> memory, std::size_t values,
              std::vector<target::ValueRange> ranges)
      : memory_(std::move(memory)),
        value_count_(values),
        ranges_(std::move(ranges)),
        rank_(static_cast<std::size_t>(memory_->rank())),
        ranks_(static_cast<std::size_t>(memory_->size())) {}

  static std::size_t header_bytes(std::size_t ranges) { return line_bytes + in_lines(ranges * sizeof(Flag)); }

  std::span<float> values() override { return {values_of(rank_), value_count_}; }

  void begin() override {
    ++round_;
    next_ = 0;
  }

  void ready(std::size_t range) override {
    ready_flags(rank_)[range].store(round_, std::memory_order_release);
  }

  bool progress() override {
    bool any = false;
    while (next_ < ranges_.size() && everybody_has(next_)) {
      make_piece(ranges_[next_++]);
      made(rank_).store((round_ - 1) * ranges_.size() + next_, std::memory_order_release);
      any = true;
    }
    return any;
  }

  void finish() override {
    waited_ = 0;
    while (next_ < ranges_.size())
      if (!progress()) wait_for_range();
    for (std::size_t r = 0; r < ranks_; ++r)
      wait_until([&] { return made(r).load(std::memory_order_acquire) >= round_ * ranges_.size(); });
  }

  double seconds_waited() const override { return waited_; }

 private:
  std::byte* base(std::size_t rank) const { return memory_->of(static_cast<int>(rank)); }
  Flag& made(std::size_t rank) const { return *reinterpret_cast<Flag*>(base(rank)); }
  Flag* ready_flags(std::size_t rank) const { return reinterpret_cast<Flag*>(base(rank) + line_bytes); }
  float* values_of(std::size_t rank) const {
    return reinterpret_cast<float*>(base(rank) + header_bytes(ranges_.size()));
  }

  bool everybody_has(std::size_t range) const {
    for (std::size_t r = 0; r < ranks_; ++r)
      if (ready_flags(r)[range].load(std::memory_order_acquire) != round_) return false;
    return true;
  }

  void wait_for_range() {
    const double begun = monotonic_seconds();
    wait_until([&] { return everybody_has(next_); });
    waited_ += monotonic_seconds() - begun;
  }

  // Pieces begin on cache lines, so that no two ranks write the same one.
  std::size_t piece_begin(const target::ValueRange& range, std::size_t rank) const {
    return rank == ranks_ ? range.count : rank * range.count / ranks_ / line_values * line_values;
  }

  void make_piece(const target::ValueRange& range) {
    const std::size_t end = range.begin + piece_begin(range, rank_ + 1);
    const float share = 1.0f / static_cast<float>(ranks_);
    for (std::size_t at = range.begin + piece_begin(range, rank_); at < end; at += block_values) {
      const std::size_t count = std::min(block_values, end - at);
      terms_.clear();
      for (std::size_t r = 0; r < ranks_; ++r) terms_.push_back(values_of(r) + at);
      float* const own = values_of(rank_) + at;
      add_in_order(own, terms_, count, share);
      for (std::size_t r = 0; r < ranks_; ++r)
        if (r != rank_) std::memcpy(values_of(r) + at, own, count * sizeof(float));
    }
  }

  std::unique_ptr<SharedSegments> memory_;
  std::size_t value_count_;
  std::vector<target::ValueRange> ranges_;
  std::size_t rank_, ranks_;
  std::uint64_t round_ = 0;
  std::size_t next_ = 0;  // range of this round: those before it are made
  double waited_ = 0;
  std::vector<const float*> terms_;
};

}  // namespace

std::unique_ptr<RangeMeans> open_shared_means(const Meeting& meeting, std::size_t values,
                                              std::vector<target::ValueRange> ranges) {
  const std::size_t bytes = SharedMeans::header_bytes(ranges.size()) + in_lines(values * sizeof(float));
  auto memory = SharedSegments::open(meeting, bytes);
  if (!memory) return nullptr;
  return std::make_unique<SharedMeans>(std::move(memory), values, std::move(ranges));
}

}  // namespace superstep::run
