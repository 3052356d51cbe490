// The texts of machines/*.toml, machines/operators/*.toml and machines/set-ups/*.toml, put into the program
// when it is built.
#pragma once

#include <span>
#include <string_view>

namespace superstep::machine {

struct BuiltIn {
  std::string_view id;  // the file's name without ".toml"
  std::string_view text;
};

std::span<const BuiltIn> built_in_files();
std::span<const BuiltIn> operator_list_files();
std::span<const BuiltIn> set_up_files();

}  // namespace superstep::machine
