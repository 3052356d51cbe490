// The elements of a tensor as runs of memory.
#pragma once

#include <vector>

#include "superstep/bsp/graph/tensor.h"

namespace poplar::core {

// Places [place, place + length) of a flattened tensor hold elements that follow one another in a variable.
struct MemoryRun {
  superstep::bsp::VariableId variable;
  std::int64_t element = 0, length = 0, place = 0;
  std::int64_t end() const { return element + length; }
};

// Of the places [begin, end) of a tensor of one dimension, as long as they come, appended in the order of
// places.
void append_runs(const superstep::bsp::Tensor& flat, std::int64_t begin, std::int64_t end,
                 std::vector<MemoryRun>& runs);

// In the order of memory; of the same elements the first place first.
void sort_by_memory(std::vector<MemoryRun>& runs);

}  // namespace poplar::core
