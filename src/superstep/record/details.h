// What a record holds of a result beside the columns of its tables: one JSON object, the column `details`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "superstep/record/result.h"

namespace superstep::record {

nlohmann::json details_of(const Result& result);
// Into a result that has its columns already. Details may be of any kind: what is missing, or of another kind
// than expected, is left as it is.
void add_details(Result& result, const nlohmann::json& details);

}  // namespace superstep::record
