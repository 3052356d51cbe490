// JSON of files and of strangers: one reader of it for all rooms, with a limit of depth.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace superstep {

// Levels of lists and objects in one another. What copies, compares or writes out a value calls itself once a
// level, so that a text of some thousand brackets would end the program; no file of ours, nor any that we
// know of, has more than ten and the extents of a tensor (chosen).
inline constexpr int deepest_json = 64;

// Of lists and objects in a text, strings left out, as far as the text is JSON.
int depth_of_json(std::string_view text);

// The value; discarded (nlohmann::json::is_discarded) where `text` is no JSON, or nested deeper than
// deepest_json.
nlohmann::json parse_json(std::string_view text);
// The same for who wants the reason: throws nlohmann::json::parse_error, which has the byte.
nlohmann::json parse_json_or_throw(std::string_view text);

}  // namespace superstep
