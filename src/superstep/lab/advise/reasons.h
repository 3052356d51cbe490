// Why a configuration is the one of its machine, and why a machine has none, in words.
#pragma once

#include <string>
#include <vector>

#include "superstep/lab/advise/search.h"

namespace superstep::lab {

// "bound by host link: micro-batch 64 adds 3 % to 32", "fits with recomputation only": what decides, and what
// another micro-batch, precision or split would do. Of a machine without an option that fits: what lacks.
std::vector<std::string> reasons_of(const std::vector<Option>& options, const Option* best,
                                    const SearchSettings& settings);

// "[6,4] over 2 units", "4 replicas", "1 unit".
std::string split_of(const machine::PredictSettings& settings);

// What takes most of a fed step: "compute", "memory", "host link" ...
std::string bound_of(const Option& option);

// Where a good part of a call rests on a constant that nobody has measured: "73 % of a call is a guess:
// host_call 300 us (100 us to 1 ms)".
void add_guesses(const machine::Machine& machine, const Option& best, std::vector<std::string>& reasons);

}  // namespace superstep::lab
