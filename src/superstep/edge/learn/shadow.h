// A share of live frames, kept for two versions to be compared on: nothing of it is published.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "superstep/edge/learn/scan.h"

namespace superstep::edge {

class Shadow {
 public:
  // One of twenty frames, while somebody collects. By the thread that receives.
  void see(std::uint64_t frame, std::span<const float> pattern);

  // Waits for `most` frames of a window, for `seconds` at most or until stop(). What there was.
  LearnScan collect(std::int64_t window, std::size_t most, double seconds);
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::unique_ptr<LearnScan> seen_;  // null: nobody collects
  std::size_t most_ = 0;
  std::uint64_t passed_ = 0;
  bool stopping_ = false;
};

}  // namespace superstep::edge
