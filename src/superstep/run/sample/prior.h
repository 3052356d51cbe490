// What is thought of parameters before the data: independent normal distributions of mean zero.
#pragma once

#include <string>

#include "superstep/graph/graph.h"

namespace superstep::run {

// `fan_in`: the deviation of a weight is divided by the square root of how many numbers it is summed with
// (R. Neal, Bayesian Learning for Neural Networks, 1996).
struct Prior {
  double deviation = 1;
  bool fan_in = false;
};
Prior prior_from_text(const std::string& text);  // "0.5", "fan-in", "fan-in:0.5"; throws Error
std::string to_string(const Prior& prior);

// The deviation of the elements of a state of the model.
double deviation_of(const Prior& prior, const graph::Graph& model, graph::ValueId state);

}  // namespace superstep::run
