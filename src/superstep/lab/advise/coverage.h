// Whether a vendor's compiler takes a model's operators: what its makers list, against what a file of the
// model holds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/machine/machine.h"

namespace superstep::lab {

// Nodes by operator, as a file of the model would have them: ours are replaced by what they are made of.
// Operators that no file can say keep their own name, "superstep.RandomMask".
std::map<std::string, int> onnx_operators(const graph::Graph& graph);

struct Coverage {
  std::string stack, source;           // "PopART 3.4"
  int kinds = 0;                       // operators of the model
  std::vector<std::string> missing;    // "GridSample (2)": not taken, with their number of nodes
  std::vector<std::string> untrained;  // taken without a derivative, of a model that is trained

  bool whole() const { return missing.empty() && untrained.empty(); }
};

// One for every list that there is of the machine's compilers, of a training those that train; empty: none is
// public.
std::vector<Coverage> coverage_of(const machine::Machine& machine,
                                  const std::map<std::string, int>& operators, bool trains);

// "PopART 3.4 takes all 12 kinds of operators", "PopART 3.4 lacks GridSample (2), DFT". Without a list: that
// PyTorch, which has them all, drives the machine, or that nothing public says it.
std::vector<std::string> coverage_words(const std::vector<Coverage>& coverage,
                                        const machine::Machine& machine);

}  // namespace superstep::lab
