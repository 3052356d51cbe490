#include "superstep/base/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace superstep {
namespace {

using nlohmann::json;

// Calls `enter` with the depth and the place of every list and object; false from it ends the walk.
template <class Enter>
void walk_levels(std::string_view text, const Enter& enter) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '[' || letter == '{') {
      if (!enter(++depth, at)) return;
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
}

// Where a level too many begins; the end of the text: nowhere.
std::size_t too_deep_at(std::string_view text) {
  std::size_t found = text.size();
  walk_levels(text, [&](int depth, std::size_t at) {
    if (depth <= deepest_json) return true;
    found = at;
    return false;
  });
  return found;
}

}  // namespace

int depth_of_json(std::string_view text) {
  int deepest = 0;
  walk_levels(text, [&](int depth, std::size_t) {
    deepest = std::max(deepest, depth);
    return true;
  });
  return deepest;
}

json parse_json(std::string_view text) {
  if (too_deep_at(text) < text.size()) return json(json::value_t::discarded);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

json parse_json_or_throw(std::string_view text) {
  constexpr int parse_error_of_library = 101;
  if (const std::size_t at = too_deep_at(text); at < text.size())
    throw json::parse_error::create(parse_error_of_library, at,
                                    fmt::format("is nested deeper than {} levels", deepest_json), nullptr);
  return json::parse(text);
}

}  // namespace superstep
