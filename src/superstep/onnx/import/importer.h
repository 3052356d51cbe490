// From an opened file to a graph.
#pragma once

#include "superstep/graph/graph.h"
#include "superstep/onnx/file.h"
#include "superstep/onnx/findings.h"
#include "superstep/onnx/import_options.h"

namespace superstep::onnx {

enum class ImportMode : std::uint8_t {
  whole,
  types_only,  // large initialisers are not read: enough for findings and costs
};

struct Imported {
  graph::Graph graph;
  Findings findings;
};

// Never throws for what the file holds: everything that is wrong with it is in the findings, and the graph is
// usable only when there are none; operations and bytes are counted for types_only alone. Throws Error
// (invalid_argument) for options that do not fit the file.
Imported import_file(const File& file, const ImportOptions& options, ImportMode mode);

}  // namespace superstep::onnx
