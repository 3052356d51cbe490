// The loops of lines.h, for each instruction set. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/rows/lines.h"

namespace superstep::kernels {

// Some lines whose beginnings are as far apart as `across` says.
struct LineBundle {
  const void* x;
  void *y, *z;
  void* scratch;
  Lines::Axis across;
};

template <class Specification>
using RunLines = void (*)(const Specification&, const LineBundle&);

// For the instruction set in force; null where the type is not taken.
RunLines<RunningSum> run_lines(const RunningSum& sum);
RunLines<ExtremePlace> run_lines(const ExtremePlace& place);
RunLines<ExtremeElements> run_lines(const ExtremeElements& elements);

}  // namespace superstep::kernels
