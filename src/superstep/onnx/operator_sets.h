// Which operator set of ONNX's default domain a node needs, and how it is written in an older one.
#pragma once

#include <optional>
#include <string_view>

#include "superstep/graph/graph.h"

namespace superstep::onnx {

inline constexpr int oldest_written_opset = 13;

// The first operator set, from 13 on, in which the node can be written with the attributes, inputs and
// element types that it has; attributes that say what older sets do anyhow are left out there
// (attribute_for()).
int opset_of(const graph::Graph& graph, const graph::Node& node);

// Reductions took their axes as an attribute before they became an input.
bool has_axes_attribute(std::string_view op, int opset);

// An attribute as a file of operator set `opset` has it; nothing where that set does not know it and does
// what it says.
std::optional<graph::Attribute> attribute_for(const graph::Graph& graph, const graph::Node& node,
                                              std::string_view name, const graph::Attribute& value,
                                              int opset);

// From set 18 on a Split into equal parts says how many: the attribute that is missing; else nothing.
std::optional<std::int64_t> missing_part_count(const graph::Node& node, int opset);

}  // namespace superstep::onnx
