// Repeats in fresh processes: what a start decides (addresses, pages, the clock that the host grants) differs
// between processes and not between the samples of one.
#pragma once

#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

// The results of this program started again with `arguments` and a "--json" of its own. Throws Error
// (interrupted), and (invalid_argument, io) with the words of a process that failed.
std::vector<record::Result> run_in_process(const std::vector<std::string>& arguments);

// This program's own words without its name and without the options named (with their values) and flags
// named: what a repeat of it is started with.
std::vector<std::string> own_arguments_without(const std::vector<std::string>& options,
                                               const std::vector<std::string>& flags);

// One result for each id. A metric is the median of what the processes say of it; its interval reaches from
// the low ends to the high ends of theirs (with more than five, between the order statistics that the sign
// test gives), so that it holds the spread between processes. All samples are kept, process after process,
// and "process_values" in the details. A result that only some processes have is left to these.
std::vector<record::Result> join_processes(const std::vector<std::vector<record::Result>>& runs);

}  // namespace superstep::lab
