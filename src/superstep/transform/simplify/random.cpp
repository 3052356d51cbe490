#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

// Dropout does nothing unless it is told to train (input 2), and nothing when it drops nothing (input 1).
Var drop_idle_dropout(const Site& site) {
  const bool inference = !site.has(2) || site.is_all(2, 0);
  return inference || site.is_all(1, 0) ? site.inputs[0] : Var();
}

// It is in training alone that samples are dropped.
Var drop_depth(const Site& site) { return site.inputs[0]; }

constexpr Rule rules[] = {{"Dropout", drop_idle_dropout}, {"superstep.StochasticDepth", drop_depth}};

}  // namespace

std::span<const Rule> random_rules() { return rules; }

}  // namespace superstep::transform
