// What happens next in a simulation: events in the order of their times, those of one time in the order in
// which they were entered.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace superstep::facility {

template <class Event>
class Calendar {
 public:
  void enter(double at, Event event) { events_.push({at, entered_++, std::move(event)}); }
  bool empty() const { return events_.empty(); }
  double next_time() const { return events_.top().at; }
  std::uint64_t entered() const { return entered_; }
  Event take() {
    Event event = events_.top().event;
    events_.pop();
    return event;
  }

 private:
  struct Entry {
    double at;
    std::uint64_t order;
    Event event;
    bool operator<(const Entry& other) const {  // the queue gives its largest
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  std::priority_queue<Entry> events_;
  std::uint64_t entered_ = 0;
};

}  // namespace superstep::facility
