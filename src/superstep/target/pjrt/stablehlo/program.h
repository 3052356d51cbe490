// A graph as a StableHLO program: the text that plug-ins compile, and what its arguments and results are.
#pragma once

#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/stablehlo/sharding.h"
#include "superstep/transform/pass.h"

namespace superstep::target::stablehlo {

struct ProgramOptions {
  // Constants of more bytes come as arguments, after inputs and states, instead of as text; 0: all as text.
  std::size_t constants_as_arguments_above = 0;
  std::int64_t first_row =
      0;  // of the batch, in that of all ranks: which samples' random numbers its rows have
  const Sharding* sharding = nullptr;  // null: for one device
  // What follows from constants and from states that no run changes is made by a program of its own, and
  // kernels of convolutions in the order in which compilers for processors read them. For one device.
  bool prepared = false;
};

// The function `main` of a module. Its arguments are the graph's inputs, its states, then constants, then
// what is prepared; its results the graph's outputs, then the states that a run changes, each of which lies
// in the memory of its argument (tf.aliasing_output), then, where a run may fail, truths that say which of
// `refusals` it met.
struct Program {
  std::string text;
  std::vector<std::string> refusals;      // "node 'table' (Gather): an index lies outside [-8, 7]"
  std::vector<graph::ValueId> changed;    // states, in the order of the results
  std::vector<graph::ValueId> constants;  // that are arguments
  // What makes the last arguments: of the graph's states, then the constants. Behind its results are truths
  // of refusals of its own, where it has any.
  struct Prepared {
    std::string text;  // empty: there is nothing to prepare
    std::size_t results = 0;
    std::vector<std::string> refusals;
  };
  Prepared prepared;
};

// The passes that a graph goes through before: those of all targets, and operators without a lowering as what
// they are made of.
std::vector<transform::Pass> program_passes();

// Throws Error (unsupported) naming the node that has no lowering.
Program write_program(const graph::Graph& graph, const ProgramOptions& options = {});

}  // namespace superstep::target::stablehlo
