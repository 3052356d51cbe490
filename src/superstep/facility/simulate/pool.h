// Devices that firings take and give back, in the order in which they asked: who asks for many is not passed
// by those who ask for few.
#pragma once

#include <cstdint>
#include <deque>

namespace superstep::facility {

class Pool {
 public:
  explicit Pool(std::int64_t devices) : free_(devices), devices_(devices) {}

  void ask(std::uint32_t firing, int devices) { waiting_.push_back({firing, devices}); }
  bool can_start() const { return open_ && !waiting_.empty() && waiting_.front().devices <= free_; }
  std::uint32_t start() {
    const Asked first = waiting_.front();
    waiting_.pop_front();
    free_ -= first.devices;
    return first.firing;
  }
  void give_back(int devices) { free_ += devices; }
  void set_open(bool open) { open_ = open; }  // nothing starts while it is closed
  std::int64_t devices() const { return devices_; }

 private:
  struct Asked {
    std::uint32_t firing;
    int devices;
  };
  std::deque<Asked> waiting_;
  std::int64_t free_, devices_;
  bool open_ = true;
};

}  // namespace superstep::facility
