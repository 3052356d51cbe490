// Calls of gRPC: their messages, one after the other, and how they end.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "superstep/edge/grpc/library/connections.h"
#include "superstep/edge/grpc/server.h"

namespace superstep::edge {

// How many questions are being answered.
class Busy {
 public:
  void begin() {
    const std::scoped_lock lock(mutex_);
    ++count_;
  }
  void end() {
    const std::scoped_lock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    none_.wait_until(lock, until, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

// What calls are made of: `busy` is theirs to count in.
struct CallSite {
  const GrpcSettings& settings;
  const Inference& inference;
  MemoryBudget& budget;
  Door& door;
  Busy& busy;
  GrpcConnections& connections;
};

class InferenceCalls : public grpc::CallbackGenericService {
 public:
  explicit InferenceCalls(const CallSite& site) : site_(site) {}
  // By the name of the method that `context` has; it deletes itself when the call is over.
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  // Calls that came so far as to here.
  std::uint64_t begun() const { return begun_; }

 private:
  const CallSite site_;
  std::atomic<std::uint64_t> begun_ = 0;
};

}  // namespace superstep::edge
