// Where the items of each source and task go, and over which channels: what several tasks at one site take is
// carried there once.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "superstep/facility/simulate/plan.h"

namespace superstep::facility {

class Deliveries {
 public:
  using Door = std::pair<std::size_t, std::size_t>;  // a task and its input, or its use

  struct Group {
    std::vector<std::size_t> channels;  // on the way, in order
    std::vector<Door> takers, users;
    std::size_t under_way = 0;
    bool producer_done = false;
  };

  explicit Deliveries(const Plan& plan);

  // Producers: sources first, then tasks.
  std::size_t of_source(std::size_t s) const { return s; }
  std::size_t of_task(std::size_t t) const { return sources_ + t; }
  std::vector<Group>& groups(std::size_t producer) { return groups_[producer]; }
  double latency(std::size_t channel) const { return latencies_[channel]; }

 private:
  Group& group(std::size_t producer, int from_site, int from_partition, std::size_t to_task);

  const Plan& plan_;
  std::size_t sources_;
  std::vector<std::vector<Group>> groups_;
  std::vector<double> latencies_;
};

// Channels from one site to another, as Deliveries numbers them: links forward and back, then sites. There
// must be a way.

std::vector<std::size_t> channels_between(const Facility& facility, int from, int to, bool same_partition);

}  // namespace superstep::facility
