// Vertex classes out of shared objects.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/poplar/codelet/codelet_class.h"

namespace poplar::core {

// The classes of a compiled file (.gp); the object stays loaded while one of them is kept. Throws
// graph_object_load_error for what is no such file.
std::vector<std::shared_ptr<const CodeletClass>> load_codelets(const std::filesystem::path& object,
                                                               unsigned workers);

// A name as tables have it: no spaces but between words, "unsigned" for "unsigned int" left as it is.
std::string normal_name(std::string_view name);

}  // namespace poplar::core
