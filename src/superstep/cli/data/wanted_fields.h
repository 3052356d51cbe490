// What a workload wants of data, for commands that only look at them.
#pragma once

#include <string_view>
#include <vector>

#include "superstep/file/source/request.h"
#include "superstep/show/show.h"

namespace superstep::cli {

// A field of a workload's data files.
struct WantedField {
  data::SourceArray array;  // -1 in its row: any extent
  std::string unit, meaning;
};

// The fields of the files that `superstep generate` makes for the workload; of one that has no generator of
// its name the model's inputs and targets. Throws Error (invalid_argument), nearest name.
std::vector<WantedField> wanted_fields(std::string_view workload);
data::SourceRequest request_for(const std::vector<WantedField>& fields);

// "as wanted", "not there", "has [n,1,28,28]".
std::string verdict_on(const WantedField& field, const show::Shown& shown);

}  // namespace superstep::cli
