// The nodes of a graph of a file, in an order in which they can run.
#pragma once

#include <vector>

#include "superstep/onnx/wire/proto.h"

namespace superstep::onnx {

// Parses the nodes. ONNX asks for them in order; writers that do not keep to it are forgiven: a node moves
// behind those whose outputs it reads, directly or in its subgraphs. Nodes on a cycle keep their place.
std::vector<NodeProto> ordered_nodes(const std::vector<Bytes>& nodes);

// The names that the subgraphs of a node read.
std::vector<std::string_view> names_read_inside(const NodeProto& node);

}  // namespace superstep::onnx
