#include "superstep/edge/learn/shadow.h"

namespace superstep::edge {

void Shadow::see(std::uint64_t frame, std::span<const float> pattern) {
  constexpr std::uint64_t every = 20;  // 5 % of live frames
  const std::scoped_lock lock(mutex_);
  if (!seen_ || seen_->size() >= most_ || ++passed_ % every != 0) return;
  seen_->numbers.push_back(frame);
  seen_->patterns.insert(seen_->patterns.end(), pattern.begin(), pattern.end());
  came_.notify_all();
}

LearnScan Shadow::collect(std::int64_t window, std::size_t most, double seconds) {
  std::unique_lock lock(mutex_);
  seen_ = std::make_unique<LearnScan>(LearnScan{.name = "shadow", .window = window});
  most_ = most;
  passed_ = 0;
  came_.wait_for(lock, std::chrono::duration<double>(seconds),
                 [&] { return stopping_ || seen_->size() >= most_; });
  return std::move(*std::exchange(seen_, nullptr));
}

void Shadow::stop() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  came_.notify_all();
}

}  // namespace superstep::edge
