// The texts of data/published/*.csv, put into the program when it is built.
#pragma once

#include "superstep/base/built_in.h"

namespace superstep::lab {

std::span<const BuiltIn> published_files();

}  // namespace superstep::lab
