// Operators of users, in shared libraries of theirs (include/superstep/operator.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::op {

// Loads a library and makes its operators known, for as long as the program lives; the same file again does
// nothing. Before graphs with them are made, on one thread. It is the user's own code, and runs with all that
// the program may do. Throws Error: not_found; bad_file where it is no library, exports no operators or ones
// of another version; invalid_argument naming the operator and what its description lacks.
void load_operators(const std::filesystem::path& library);

// By which the graph knows an operator of another domain: "com.example.Wiggle".
std::string custom_name(std::string_view domain, std::string_view name);

// Of all that was loaded, in this order.
std::vector<std::string> loaded_operators();
bool is_custom(std::string_view op);  // whether it is one of them

}  // namespace superstep::op
