// Results into the records and out of them, and as JSON between machines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/lab/formats/result.h"
#include "superstep/run/records.h"

namespace superstep::lab {

run::Record to_record(const Result& result);
std::vector<run::Record> to_records(const std::vector<Result>& results);
Result to_result(const run::Record& record);

// The results of a JSON file, or of a record where `name` is a number or "record:12", or "last" (the newest
// record) or "last:WORKLOAD", or "all": the newest of every result of bench and scale. Throws Error
// (not_found, bad_file).
std::vector<Result> load_results(const std::string& name);

}  // namespace superstep::lab
