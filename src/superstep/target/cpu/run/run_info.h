// What a step can ask about the run it is part of: an operand of Space::run points to one of these.
#pragma once

#include <cstdint>

#include "superstep/target/target.h"

namespace superstep::target::cpu {

struct RunInfo {
  std::uint64_t first_row = 0;   // of this micro-batch within the batch
  Exchange* exchange = nullptr;  // with the other parts of the batch; null: there is one part
};

}  // namespace superstep::target::cpu
