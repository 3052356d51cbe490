// The best placement of a workflow on a facility: by branch and bound where that ends, else by improving one
// task at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/facility/place/score.h"
#include "superstep/facility/timing.h"

namespace superstep::facility {

// What is searched: times and sites that do not change from placement to placement.
struct Problem {
  Workflow workflow;
  Facility facility;
  std::vector<TaskChoices> choices;
  std::vector<int> source_sites;
  std::vector<double> power;
  Aim aim = Aim::end;

  Plan plan_of(const std::vector<int>& chosen) const;
};

struct Candidate {
  std::vector<int> chosen;  // of each task, which of its choices
  Score score;
};

struct SearchResult {
  std::vector<Candidate> best;  // first the best; empty: no placement is possible
  double placements = 1;        // that there are
  std::size_t simulated = 0;
  bool proven = false;  // every other one is no better: simulated, or bounded
  Score bound;          // what no placement can fall below
};

struct SearchLimits {
  std::size_t most_simulated = 2'000;
  std::int64_t most_items = 500;  // of a source, for comparisons
  std::size_t kept = 24;          // candidates, for a closer look
  int only_site = -1;             // every task at this site; -1: anywhere
};

// The same problem gives the same answer. Throws Error (interrupted).
SearchResult search(const Problem& problem, const SearchLimits& limits);

// Why these tasks cannot be where they are together: a partition has fewer devices than its services hold;
// empty: they can.
std::string conflict_of(const Problem& problem, const std::vector<int>& chosen);

}  // namespace superstep::facility
