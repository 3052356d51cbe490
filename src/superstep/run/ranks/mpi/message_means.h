// RangeMeans by messages that travel while the ranks do other work.
#pragma once

#include "superstep/run/ranks/mpi/mpi_c.h"
#include "superstep/run/ranks/range_means.h"

namespace superstep::run {

std::unique_ptr<RangeMeans> make_message_means(MPI_Comm world, std::size_t values,
                                               std::vector<target::ValueRange> ranges);

}  // namespace superstep::run
