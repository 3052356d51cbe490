// Counting what a file holds without importing it.
#pragma once

#include <vector>

#include "superstep/onnx/file.h"

namespace superstep::onnx {

// The operators of all graphs and functions of the file, most frequent first. Nodes that are damaged are not
// counted: the import tells about them.
std::vector<OperatorCount> count_operators(const File& file);

}  // namespace superstep::onnx
