// The look of every page.
#pragma once

#include <string_view>

namespace superstep::page {

// The look of every page: colours for light and dark screens and for paper, tables, pictures, plots.
extern const std::string_view stylesheet;

}  // namespace superstep::page
