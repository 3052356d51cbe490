// How much memory this process may still take before something ends it.
#pragma once

#include <filesystem>
#include <string>

namespace superstep {

// Bytes: the least of what the system estimates (MemAvailable), of what the process's control group still
// has, page cache that can be dropped not counted (versions 1 and 2), and of its limit on addresses
// (ulimit -v). 0: nobody knows. `root` holds proc/ and sys/; tests have their own.
double available_memory(const std::filesystem::path& root = "/");

// For what a file declares, before it is allocated: throws Error (out_of_memory), with both numbers, when
// `bytes` are more than what is available.
void require_memory(double bytes, const std::string& where);

}  // namespace superstep
