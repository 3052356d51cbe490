// The end of all ranks, when one cannot go on.
#pragma once

#include "superstep/base/error.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::run {

// The others would wait for this rank for ever. An error that all have, the first one tells; the rest give it
// the time to.
[[noreturn]] void end_all_ranks(Communicator& world, const Error& error);

}  // namespace superstep::run
