// Attributes of ONNX nodes as attributes of a graph.
#pragma once

#include "superstep/onnx/import/node_import.h"
#include "superstep/onnx/import/scope.h"

namespace superstep::onnx {

// Adds what `proto` says to a node's or a call's attributes: values to `values`, graphs to `graphs`. An
// attribute that refers to one of the enclosing function's takes its value, or is left out when the call gave
// none. Throws Error (bad_file, unsupported) naming the attribute.
void add_attribute(const AttributeProto& proto, const CallAttributes* call, const ExternalData& external,
                   CallAttributes& result);

}  // namespace superstep::onnx
