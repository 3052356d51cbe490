// Times of this machine's system: barriers, fork and join, allocation, files. Internal to lab/machine.
#pragma once

#include <filesystem>
#include <vector>

#include "superstep/lab/machine/host_machine.h"

namespace superstep::lab {

HostQuantity barrier_time(int threads);    // of std::barrier, all threads arriving
HostQuantity fork_join_time(int threads);  // of an empty parallel_for on the pool
HostQuantity allocation_time();            // of a fresh page: taken from the system, touched, given back
// Sequential writing (flushed to the device), and reading with the page cache cold and warm. Where the system
// does not let go of its cache, the cold rate says so in its note.
std::vector<HostQuantity> file_rates(const std::filesystem::path& folder, std::size_t bytes);

// The best of times, up to their median: a busy neighbour makes times longer, never shorter.
HostQuantity time_of(std::string name, const std::vector<double>& seconds, std::string note = {});
// The best of rates, down to their median.
HostQuantity rate_of(std::string name, std::string unit, const std::vector<double>& rates, std::string note = {});

}  // namespace superstep::lab
