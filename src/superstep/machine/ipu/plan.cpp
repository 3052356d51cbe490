#include "superstep/machine/ipu/plan.h"

#include <algorithm>

namespace superstep::machine::ipu {

const char* Cycles::largest() const {
  const std::pair<double, const char*> parts[] = {{compute, "compute"},
                                                  {exchange, "exchange"},
                                                  {sync, "sync"},
                                                  {rearrange, "rearrangement"},
                                                  {control, "control"}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

Plan in_sequence(const Plan& first, const Plan& second) {
  Plan both = first.cycles.total() >= second.cycles.total() ? first : second;
  both.cycles = first.cycles + second.cycles;
  both.macs = first.macs + second.macs;
  both.bytes.operands = std::max(first.bytes.operands, second.bytes.operands);
  both.bytes.temporary = std::max(first.bytes.temporary, second.bytes.temporary);
  both.bytes.interleaved = std::max(first.bytes.interleaved, second.bytes.interleaved);
  both.bytes.code = first.bytes.code + second.bytes.code;
  both.bytes.elements = std::max(first.bytes.elements, second.bytes.elements);
  both.bytes.pieces = first.bytes.pieces + second.bytes.pieces;
  both.bytes.partners = first.bytes.partners + second.bytes.partners;
  return both;
}

}  // namespace superstep::machine::ipu
