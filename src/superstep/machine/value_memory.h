// The memory that the values of a graph need: which of them are alive while each kernel runs, and what state
// takes.
#pragma once

#include <span>
#include <vector>

#include "superstep/machine/cost_model.h"

namespace superstep::machine {

struct LiveMoment {
  std::size_t kernel = 0;
  double activations = 0, temporary = 0;  // bytes
  double recomputed = 0;  // share of the forward pass that is run again: the last segment is still there
  std::vector<NamedBytes> values;  // alive, largest first, a few
};

// The fullest moment. A value lives from its kernel to its last reader; views share their source's bytes. In
// a pipeline of S stages stage s (from 0) keeps what passes from forward to backward for 2 (S - 1 - s) + 1
// micro-batches. With recomputation only the ends of segments are kept, and one segment at a time is alive in
// full; the segments are those that need least.
LiveMoment fullest_moment(const graph::Graph& graph, std::span<const OperatorCost> costs,
                          const Precision& precision, const MemoryOptions& options);

// Parameters and other state of a stage: trained parameters first, the optimiser's second.
struct StateBytes {
  double parameters = 0, optimizer = 0;
};
StateBytes state_bytes(const graph::Graph& graph, std::span<const OperatorCost> costs,
                       const Precision& precision, std::size_t stage);

// Puts the optimiser's state where the options have it: on the chip, or beside it.
void place_optimizer(double bytes, const MemoryOptions& options, Memory& memory);

// The memory of a unit of so much capacity at its fullest moment, by parameters, optimiser and activations;
// what a machine keeps beside these is for its model to add.
Memory memory_of_values(const graph::Graph& graph, std::span<const OperatorCost> costs,
                        const Precision& precision, const MemoryOptions& options, double capacity);

}  // namespace superstep::machine
