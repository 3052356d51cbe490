// A placement looked at closely: its usual course, what it may come to, what binds, and what more of
// something would buy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/facility/place/search.h"

namespace superstep::facility {

// A figure over draws of all that is uncertain: their median and the interval that holds 80 % of them.
// Without draws that of the usual course.
struct Spread {
  double value = 0, low = 0, high = 0;
  double met = 1;  // share of the draws within the target's limit
};

struct Assessed {
  Candidate candidate;
  Simulated usual;  // with its timeline
  Spread end, latency, cost, energy;
  std::vector<Spread> targets;  // as the workflow's
  int draws = 0;
  Score score;  // of the medians
};

struct AssessSettings {
  int draws = 100;
  std::uint64_t seed = 1;
  int threads = 1;
  std::int64_t most_items = 2'000;  // of a source, of each draw
  bool timeline = true;
};

// Throws Error (interrupted).
Assessed assess(const Problem& problem, const Candidate& candidate, const AssessSettings& settings);

// Of what: a link twice as fast, a partition with twice the devices, no queues.
struct Variant {
  std::string what;
  double aim = 0, end = 0, cost = 0;  // what the figures become
};
// All that the placement uses, the one that helps most first.
std::vector<Variant> variants_of(const Problem& problem, const Assessed& assessed);

// Everything at one site, against the best placement.
struct Coupled {
  std::string site;
  bool possible = false;
  std::string why_not;
  Candidate best;
  // Where the best placement has tasks at several sites and is better: how slow its links may become until
  // this one is as good, as a factor of their rates; 0: however slow.
  double crossover = 0;
};
std::vector<Coupled> coupled_of(const Problem& problem, const Candidate& best, const SearchLimits& limits);

// Sites that a placement's tasks are at.
std::vector<int> sites_of(const Problem& problem, const std::vector<int>& chosen);

}  // namespace superstep::facility
