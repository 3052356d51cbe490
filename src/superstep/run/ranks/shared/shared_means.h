// RangeMeans in memory that the ranks of one host share: the array itself lies there, and nothing is copied.
#pragma once

#include "superstep/run/ranks/range_means.h"
#include "superstep/run/ranks/shared/segments.h"

namespace superstep::run {

// Collective, with the same ranges on every rank; null: see SharedSegments.
std::unique_ptr<RangeMeans> open_shared_means(const Meeting& meeting, std::size_t values,
                                              std::vector<target::ValueRange> ranges);

}  // namespace superstep::run
