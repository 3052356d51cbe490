// Counting what a file holds without importing it.
#pragma once

#include <vector>

#include "superstep/onnx/file.h"
#include "superstep/onnx/findings.h"

namespace superstep::onnx {

// The operators of all graphs and functions of the file, most frequent first. Nodes that are damaged are not
// counted: the import tells about them.
std::vector<OperatorCount> count_operators(const File& file);

// Floating initialisers of the model's graph that nodes read, in that graph or in one inside it: elements and
// bytes. For files that cannot be imported; an import counts what it takes.
struct ParameterCount {
  std::int64_t elements = 0, bytes = 0;
};
ParameterCount count_parameters(const File& file);

}  // namespace superstep::onnx
