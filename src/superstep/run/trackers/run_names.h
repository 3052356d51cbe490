// What runs are called that are looked at together: in a terminal, on a page, and in others' programs.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace superstep::run {

// Every folder once, as it was written first: runs/a, runs/a/ and a link to it are one run.
std::vector<std::filesystem::path> each_once(std::span<const std::filesystem::path> folders);

// Of each folder the shortest tail of its path that no other one has: "mlp-1" of runs/mlp-1/ alone,
// "0000/run" and "0001/run" of trials/0000/run and trials/0001/run. Of folders that are there once
// (each_once).
std::vector<std::string> names_of(std::span<const std::filesystem::path> folders);

}  // namespace superstep::run
