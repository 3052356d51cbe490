// What passes the borders between the stages of a pipeline, each turn.
#pragma once

#include <span>
#include <vector>

#include "superstep/machine/work.h"

namespace superstep::machine {

// Bytes of a micro-batch between a stage and the next one: activations go up, gradients down.
struct Border {
  double up = 0, down = 0;
};

// One for each pair of neighbouring stages; `works` know their stage (assign_stages). A value that skips a
// stage passes through it. Inputs and parameters come from elsewhere.
std::vector<Border> borders_of(const graph::Graph& graph, std::span<const Work> works,
                               const Precision& precision, std::size_t stages);

}  // namespace superstep::machine
