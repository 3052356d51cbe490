// Operators of ours that a file carries as functions in plain ONNX: what they do cannot be said by nodes of
// fixed shapes alone.
#pragma once

#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/onnx/wire/wire.h"

namespace superstep::onnx {

// Their domain in files. A program that does not know it runs the function.
inline constexpr std::string_view own_domain = "superstep";

// The name in a file of an operator that is written so; empty: it is not.
std::string_view own_function(std::string_view op);

// The FunctionProtos that a graph's file needs.
std::vector<Message> own_functions(const graph::Graph& graph, int opset);

}  // namespace superstep::onnx
