// Memory that requests of unknown people may take in all, asked for before it is taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace superstep::edge {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : free_(bytes), all_(bytes) {}

  // A share, given back when it ends.
  class Share {
   public:
    Share() = default;
    Share(MemoryBudget* budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_) budget_->free_.fetch_add(bytes_, std::memory_order_relaxed);
    }
    explicit operator bool() const { return budget_ != nullptr; }
    // So much more of `budget`, which is that of the share where it has one. False: there is not so much
    // left, and the share is as it was.
    bool grow(MemoryBudget& budget, std::size_t bytes) {
      Share more = budget.take(bytes);
      if (!more) return false;
      budget_ = std::exchange(more.budget_, nullptr);
      bytes_ += bytes;
      return true;
    }

   private:
    MemoryBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  // False where there is not so much left.
  Share take(std::size_t bytes) {
    std::size_t present = free_.load(std::memory_order_relaxed);
    while (present >= bytes)
      if (free_.compare_exchange_weak(present, present - bytes, std::memory_order_relaxed))
        return {this, bytes};
    return {};
  }
  std::size_t left() const { return free_.load(std::memory_order_relaxed); }
  std::size_t all() const { return all_; }

 private:
  std::atomic<std::size_t> free_;
  const std::size_t all_;
};

}  // namespace superstep::edge
