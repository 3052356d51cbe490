// Files on their way: written as TARGET.partial-PID-N beside their target and renamed when they are whole. A
// process that is killed leaves them behind; the next one that writes there takes them away.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace superstep {

// A name beside `target` that nobody else uses. Throws Error (io) when a device, a pipe or a socket is there:
// what is renamed to its name would take its place (/dev/null is then a file for everybody).
std::string partial_name(const std::filesystem::path& target);

// Whether a file of this name is one.
bool is_partial_name(const std::string& name);

// Those in `folder` whose process is gone from this host, and that nobody has touched for `untouched`: hosts
// that share the folder have numbers of their own for their processes.
void sweep_partial_files(const std::filesystem::path& folder,
                         std::chrono::seconds untouched = std::chrono::minutes(10));

// The same, in each folder once a process.
void sweep_partial_files_once(const std::filesystem::path& folder);

// Those that this process has open: before it is ended in the middle of writing them.
void remove_open_partial_files();

}  // namespace superstep
