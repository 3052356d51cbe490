// Results by the name that a user gives them: a file, or a record.
#pragma once

#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::record {

// The results of a JSON file, or of a record where `name` is a number or "record:12", or "last" (the newest
// record) or "last:WORKLOAD", or "all": the newest of every result of bench and scale. Throws Error
// (not_found, bad_file).
std::vector<Result> load_results(const std::string& name);

}  // namespace superstep::record
