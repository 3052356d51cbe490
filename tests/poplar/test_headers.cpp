// Names that sources take from a header without including what defines them.
#include <poplar/Program.hpp>

namespace {

// Declared beside programs, with nothing else included.
void add_nothing(poplar::Graph&, const poplar::Tensor&, poplar::program::Sequence&,
                 const poplar::OptionFlags& = {}) {}

}  // namespace

#include "tests/poplar/machine.h"

TEST(PoplarHeaders, AHeaderOfProgramsNamesTheirGraph) {
  Machine machine;
  poplar::program::Sequence sequence;
  add_nothing(machine.graph, machine.variable(poplar::INT, {1}), sequence);
  EXPECT_TRUE(sequence.isEmpty());
}
