// A function of the program's owner that deep code calls: set by one thread, called by any. What is being
// called stays alive when it is replaced meanwhile. Asking whether there is one costs a load.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace superstep {

template <class Signature>
class Listener {
 public:
  using Function = std::function<Signature>;

  void set(Function function) {
    auto next = function ? std::make_shared<const Function>(std::move(function)) : nullptr;
    const std::scoped_lock lock(mutex_);
    function_ = std::move(next);
    present_ = function_ != nullptr;
  }

  std::shared_ptr<const Function> installed() const {  // null when there is none
    if (!present_.load(std::memory_order_relaxed)) return nullptr;
    const std::scoped_lock lock(mutex_);
    return function_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Function> function_;
  std::atomic<bool> present_ = false;
};

}  // namespace superstep
