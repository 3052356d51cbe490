// From sources of codelets to a shared object, kept where the user's other caches are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace poplar::core {

// The shared object of these files, compiled together by popc with the words of `flags`. What was compiled
// before from files of the same content, with the same flags, by the same popc is taken again. Throws
// graph_program_compilation_error with what the compiler said.
std::filesystem::path compile_codelets(const std::vector<std::string>& files, const std::string& flags);

}  // namespace poplar::core
