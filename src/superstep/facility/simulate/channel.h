// One direction of a link, or the network of a site: transfers that are under way share its rate evenly
// (processor sharing). Time is kept as bytes that each of them has been given since the beginning, so that a
// transfer costs the logarithm of how many there are.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace superstep::facility {

class Channel {
 public:
  explicit Channel(double rate) : rate_(rate) {}  // bytes/s

  void join(double now, double bytes, std::uint32_t transfer);
  // When the next transfer is through if nothing changes; infinity: nothing is under way, or it is broken.
  double next() const;
  std::uint32_t leave(double now);  // the transfer that is through by then
  void set_broken(double now, bool broken);
  bool idle() const { return under_way_.empty(); }
  double busy() const { return busy_; }  // s in which something was under way and it was not broken

  // Each change makes what was said of next() before it void.
  std::uint32_t version = 0;

 private:
  void advance(double now);

  struct Entry {
    double until;  // bytes that each has been given when this one is through
    std::uint32_t transfer;
    bool operator<(const Entry& other) const {
      return until != other.until ? until > other.until : transfer > other.transfer;
    }
  };
  double rate_, given_ = 0, at_ = 0, busy_ = 0;
  bool broken_ = false;
  std::priority_queue<Entry> under_way_;
};

}  // namespace superstep::facility
