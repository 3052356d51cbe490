// Code that tells the library of a file's vertices.
#pragma once

#include <string>
#include <vector>

#include "vertices.h"

namespace popc {

// A source that includes the file, the number-th, and puts its vertices into a table.
std::string registration(const std::string& file, std::size_t number, const std::vector<Vertex>& vertices);

// A source that joins the tables of so many such files behind one function.
std::string joined_tables(std::size_t files);

}  // namespace popc
