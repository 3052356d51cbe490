// RangeMeans by the library's own MPI_Iallreduce, a call a range: what ours is measured against. Its order of
// sums is the library's.
#pragma once

#include "superstep/run/ranks/mpi/mpi_c.h"
#include "superstep/run/ranks/range_means.h"

namespace superstep::run {

std::unique_ptr<RangeMeans> make_library_means(MPI_Comm world, std::size_t values,
                                               std::vector<target::ValueRange> ranges);

}  // namespace superstep::run
