// Code that tells the library of a file's vertices.
#pragma once

#include <string>
#include <vector>

#include "vertices.h"

namespace popc {

// A source that includes the file and puts its vertices into the table of this name.
std::string registration(const std::string& file, const std::string& id, const std::vector<Vertex>& vertices);

// A source that joins tables behind one function.
std::string joined_tables(const std::vector<std::string>& ids);

}  // namespace popc
