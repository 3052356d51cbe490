// Which pass of a list changes what a graph computes?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/transform/pass.h"

namespace superstep::transform {

struct BisectOptions {
  std::vector<std::string> disabled;  // passes to leave out, by name
  std::uint64_t seed = 1;             // of the data
  // Told before every pass: how many of how many are done.
  std::function<void(std::size_t done, std::size_t all)> progress = nullptr;
};

// A pass, and what the graph gives after it beside what it gave before.
struct BisectStep {
  std::string pass;
  std::size_t position = 0;  // in the list that was given
  bool changed = false;
  double difference = 0;  // as a share of the largest element of that output or state
  double allowed = 0;     // there
  std::string where;  // the output or state that is closest to what is allowed, or beyond; empty: none moved
  bool is_wrong() const { return !(difference <= allowed); }
};

struct Bisection {
  std::vector<BisectStep> steps;  // up to the first wrong one
  const BisectStep* wrong() const {
    return !steps.empty() && steps.back().is_wrong() ? &steps.back() : nullptr;
  }
};

// Evaluates the graph by definition (op/core/evaluate.h) on random data before the first pass and after every
// one that changed it, and stops at the first whose outputs or states differ from those before by more than
// it may: by Pass::rounding, or, of a pass that rounds at all, by what rounding parameters and inputs
// otherwise does to that output, whichever is more (deep models magnify it). What follows a pass that gives
// other results (Pass::other_results) is held against those. Inputs are uniform in [0, 1), whole numbers 0 or
// 1; states keep their values, but those that are zero throughout (biases, moments) become uniform in [0.25,
// 1), so that what is multiplied by them is seen and no update divides by nothing. Throws Error where a pass
// or an evaluation does.
Bisection bisect(graph::Graph graph, std::span<const Pass> passes, const BisectOptions& options = {});

}  // namespace superstep::transform
