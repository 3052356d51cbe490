// What no simulation of a placement can fall below, from sums alone: nothing waits for devices, links carry
// one transfer at a time, nothing breaks.
#pragma once

#include <vector>

#include "superstep/facility/place/score.h"
#include "superstep/facility/timing.h"

namespace superstep::facility {

class Bounds {
 public:
  Bounds(const Workflow& workflow, const Facility& facility, const std::vector<TaskChoices>& choices,
         const std::vector<int>& source_sites, const std::vector<double>& power, Aim aim);

  // `chosen`: of each task which of its choices; -1: any of them.
  Score of(const std::vector<int>& chosen) const;
  // Choices of a task that some place of each producer can send to, and the workflow's sites are joined.
  bool reachable(int task, int choice, const std::vector<int>& chosen) const;

 private:
  struct Times {
    double end = 0, latency = 0, born = 0;  // of a task's last item, of any item, and the last's birth
  };
  double moved(int from_site, int to_site, double bytes) const;
  double least_move(const Input& input, int to_site, const std::vector<int>& chosen) const;
  Times best_of_task(std::size_t t, const std::vector<int>& chosen, const std::vector<Times>& before) const;
  int site_of(std::size_t t, int choice) const;

  const Workflow& workflow_;
  const Facility& facility_;
  const std::vector<TaskChoices>& choices_;
  const std::vector<int>& source_sites_;
  const std::vector<double>& power_;
  Aim aim_;
  std::vector<double> firings_;                // of each task, at least
  std::vector<std::vector<double>> one_byte_;  // s per byte between sites; infinity: no way
  std::vector<std::vector<double>> latency_;   // s between sites
};

}  // namespace superstep::facility
