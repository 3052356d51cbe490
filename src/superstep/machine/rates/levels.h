// How a call of a law is filed: under which kinds, factors, neighbours and relatives.
#pragma once

#include <string>
#include <vector>

#include "superstep/machine/rates/call.h"

namespace superstep::machine {

// `kinds` from the particular to the law; `own`: what neighbours must have in common beside the machine;
// empty: there are none.
void file_call(LawCall& call, const MachineFacts& machine, std::vector<std::string> kinds,
               const std::string& own = {}, const std::string& software = {});

}  // namespace superstep::machine
