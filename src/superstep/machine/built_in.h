// The texts of machines/*.toml, machines/operators/*.toml, machines/set-ups/*.toml and machines/rates/*.csv,
// put into the program when it is built.
#pragma once

#include "superstep/base/built_in.h"

namespace superstep::machine {

std::span<const BuiltIn> built_in_files();
std::span<const BuiltIn> operator_list_files();
std::span<const BuiltIn> set_up_files();
std::span<const BuiltIn> rate_files();

}  // namespace superstep::machine
