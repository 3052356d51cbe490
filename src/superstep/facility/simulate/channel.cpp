#include "superstep/facility/simulate/channel.h"

namespace superstep::facility {

void Channel::advance(double now) {
  if (!under_way_.empty() && !broken_) {
    given_ += rate_ * (now - at_) / static_cast<double>(under_way_.size());
    busy_ += now - at_;
  }
  at_ = now;
}

void Channel::join(double now, double bytes, std::uint32_t transfer) {
  advance(now);
  if (under_way_.empty()) given_ = 0;  // so that long simulations lose no digits
  under_way_.push({given_ + bytes, transfer});
  ++version;
}

double Channel::next() const {
  if (under_way_.empty() || broken_) return std::numeric_limits<double>::infinity();
  return at_ + (under_way_.top().until - given_) * static_cast<double>(under_way_.size()) / rate_;
}

std::uint32_t Channel::leave(double now) {
  advance(now);
  const Entry first = under_way_.top();
  given_ = first.until;  // what rounding left over
  under_way_.pop();
  ++version;
  return first.transfer;
}

void Channel::set_broken(double now, bool broken) {
  advance(now);
  broken_ = broken;
  ++version;
}

}  // namespace superstep::facility
