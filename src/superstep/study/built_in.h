// The texts of studies/*.toml, put into the program when it is built.
#pragma once

#include "superstep/base/built_in.h"

namespace superstep::study {

std::span<const BuiltIn> study_files();

}  // namespace superstep::study
