// What a page can do for a reader with a script: tables sort and filter, plots tell values and enlarge.
#pragma once

#include <string_view>

namespace superstep::page {

// One for every page, inline, without a network. Everything is there to be read without it.
extern const std::string_view script;

}  // namespace superstep::page
