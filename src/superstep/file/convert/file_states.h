// Whether files are the ones that they were: their names, lengths and times of writing, as one digest.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace superstep::data {

// Of the files, and of all that folders hold, below them too. Nothing is read.
std::string state_of_files(std::span<const std::filesystem::path> paths);

}  // namespace superstep::data
