// The numbers of a JSON object as values of a record.
#pragma once

#include <string>
#include <string_view>

#include "superstep/file/records/record.h"

namespace superstep::data {

// Numbers, booleans and lists of them, nested to an array, become tensors (i64 where all are whole numbers
// that are written so, else f64); texts become bytes; what is in an object has the name "OBJECT.KEY"; null
// and lists of other things are left out. Throws Error (bad_file) where the text is no JSON object, or a list
// is ragged.
void add_json_values(Record& record, std::string_view text, const std::string& where);

}  // namespace superstep::data
