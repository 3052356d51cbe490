// Gradients that are averaged while the pass that makes them still runs, against the same after it: what the
// exchange adds to a step.
#pragma once

#include <string>
#include <vector>

#include "superstep/record/result.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::lab {

struct OverlapSettings {
  std::vector<std::int64_t> sizes;  // bytes of a rank's gradients; multiples of 4
  std::size_t range_values = std::size_t{256} << 10;
  int multiplications =
      16;  // and as many additions, for each gradient: a dense layer's backward pass over 8 samples
  int iterations = 20;
};

// Collective. A step makes gradients range by range with so much arithmetic, last to first as a backward pass
// does, and ends when every rank has the means of all. Contenders, interleaved: nothing is exchanged;
// MPI_Allreduce of all when the pass has ended; the same by MPI_Iallreduce a range, polled between ranges;
// our sums after the pass; our sums beside it. Means are checked. A result a size; a time is that of the
// slowest rank.
std::vector<record::Result> bench_overlap(run::Communicator& world, const OverlapSettings& settings);

// What each adds to the step without exchange: medians, and by the fastest iterations.
std::string overlap_table(const std::vector<record::Result>& results);

}  // namespace superstep::lab
