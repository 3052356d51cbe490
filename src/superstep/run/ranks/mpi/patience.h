// A limit to how long something may take that would otherwise wait for ever, and ends the process when it is
// over.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "superstep/base/threads/own_threads.h"

namespace superstep::run {

class Patience {
 public:
  // `give_up` is called when this object still lives after `limit`.
  Patience(std::chrono::seconds limit, std::function<void()> give_up)
      : thread_(start_thread([this, limit, give_up = std::move(give_up)] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, limit, [this] { return done_; })) give_up();
        })) {}
  ~Patience() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace superstep::run
