// Which data set of a file is meant, by the conventions of NeXus (manual.nexusformat.org, "Find the plottable
// data"): the attributes `default` lead from the file through its entry to a group with the attribute
// `signal`, which names it.
#pragma once

#include <span>
#include <string>

#include "superstep/file/hdf5/hdf5.h"

namespace superstep::data {

// Its path; empty where the file does not say it. Where nothing leads to a group, the only group with a
// `signal` counts, and of files from before 2014 the only data set with the attribute `signal` = 1. Looks at
// 64 groups and 64 data sets at most.
std::string nexus_signal(const Hdf5File& file, std::span<const DataSetInfo> data_sets);

}  // namespace superstep::data
