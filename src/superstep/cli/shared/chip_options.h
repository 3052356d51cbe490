// --pipeline, --units, --accumulate and --replicas, as `predict`, `infer` and `profile` have them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "superstep/target/target.h"

namespace superstep::cli {

struct ChipArguments {
  std::string pipeline;
  int units = 0, accumulate = 1, replicas = 0;  // 0: not said
};

void add_chip_options(CLI::App& command, ChipArguments& arguments);

// "6,4". Throws Error (invalid_argument).
std::vector<int> stage_layers(const std::string& text);

// Replicas that are not said are as many as the units hold. Throws Error (invalid_argument) when an automatic
// pipeline does not say how many chips there are, and when the replicas do not take all units, or more.
target::Chips chips_of(const ChipArguments& arguments);

}  // namespace superstep::cli
