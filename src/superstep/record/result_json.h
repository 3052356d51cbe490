// The form of results in files: the schema "superstep-result/1", written and checked here and nowhere else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::record {

// Every member of the schema is there; null stands for what is not known.
nlohmann::json to_json(const Result& result);
// Further members are kept as details. Throws Error (bad_file) naming the member: another schema, a metric
// without a number, no metrics at all.
Result result_from_json(const nlohmann::json& json);

// One object where there is one result, an array otherwise.
std::string write_results(const std::vector<Result>& results);
// Takes either. Input is hostile: at most 64 MB, 64 levels deep. Throws Error (bad_file) with `where`.
std::vector<Result> read_results(std::string_view text, const std::string& where);

}  // namespace superstep::record
