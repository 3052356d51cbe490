// Asynchronous successive halving (Li et al. 2020, "A system for massively parallel hyperparameter tuning",
// algorithm 2): trials train for a few epochs, and of those that have come as far the best one in so many go
// on to the next rung, without waiting for the others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace superstep::study {

struct Halving {
  std::vector<int> epochs;  // of the rungs, rising; the last is the whole training
  int keep_one_in = 3;
};

// Rungs below `most` epochs, each `keep_one_in` times shorter than the next, down to `least`; one that is
// less than an epoch is left out. keep_one_in 1: no trial is cut short.
Halving halving_of(double most, int least, int keep_one_in);

// A trial as the rungs see it: where it stands, what it said there.
struct Standing {
  enum class State { running, paused, over };  // over: trained to the end, diverged or failed
  std::int64_t number = 0;
  int rung = 0;  // that it is on, or has done
  State state = State::running;
  // Of each rung that it has done; worse than any where it diverged. Smaller is better.
  std::vector<double> losses;
};

// The trial that goes on to the rung above its own now: the best paused one of those that a rung keeps, from
// the highest rung down. Nothing: none is good enough among those that have come as far.
std::optional<std::int64_t> promoted(const std::vector<Standing>& trials, const Halving& halving);

// When no trial is to begin and none runs: the best of the highest rung, so that one is trained to the end.
// Nothing where one is, or where none is left.
std::optional<std::int64_t> last_promoted(const std::vector<Standing>& trials, const Halving& halving);

}  // namespace superstep::study
