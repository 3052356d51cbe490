// Results for other people's eyes: without the machine's name and the folders of who measured.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "superstep/record/result.h"

namespace superstep::record {

// The host's name is left out; of what is a path from the root or from a home, wherever it stands, the last
// name is kept ("/home/me/peaks.h5" is "peaks.h5").
Result without_places(Result result);
nlohmann::json without_places(nlohmann::json facts);  // of a file of another form

}  // namespace superstep::record
