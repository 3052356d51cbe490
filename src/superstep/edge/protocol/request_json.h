// The JSON of a request, read without keeping it: its small parts as a value, its numbers where they belong.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "superstep/base/function_ref.h"

namespace superstep::edge {

// Values of a request beside its tensors' data: names, shapes, parameters. Clients send some twenty; a value
// takes 16 bytes where its text may take two (chosen).
inline constexpr std::size_t most_header_values = 1 << 14;
// Bytes of texts and keys among them.
inline constexpr std::size_t most_header_bytes = 1 << 20;

// The request, with an empty list in place of each input's "data" that is a list: those are left out, however
// long. Throws Error (invalid_argument) where it is no JSON object, nested deeper than deepest_json, or has
// more beside its data than the limits above.
nlohmann::json request_header(std::string_view text);

// Told of each number (or whatever stands in its place: truth, text, null) of the "data" of the inputs, in
// their order: `input` counts the elements of "inputs".
using TakeValue = FunctionRef<void(std::size_t input, const nlohmann::json& value)>;
// `text` was read by request_header() before. What `take` throws goes through.
void read_request_data(std::string_view text, TakeValue take);

}  // namespace superstep::edge
