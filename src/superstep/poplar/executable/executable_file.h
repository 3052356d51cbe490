// Executables as bytes, without what a file has in front of them.
#pragma once

#include <string>
#include <string_view>

#include "superstep/poplar/core/engine_data.h"

namespace poplar::core {

std::string bytes_of(const ExecutableData& executable);
// Throws graph_object_load_error for what no executable has as its bytes.
std::shared_ptr<const ExecutableData> executable_of(std::string_view bytes);

}  // namespace poplar::core
