// How nodes of ONNX files become nodes of a graph: one table an operator family.
//
// A graph has ONNX's operators in their present meaning. An operator that meant the same at every set it is
// read from needs no line here: its node is taken over as it is. A line says from which set to which set an
// operator had another form, and how that form is said today. Operators that do not exist any more are lines
// too, and so are those of other domains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/onnx/import/node_import.h"

namespace superstep::onnx {

// Gives the node's outputs: at least as many as are wanted.
using Adapt = std::vector<Var> (*)(NodeImport& node);

struct Adapter {
  std::string_view op;
  std::int64_t first, last;  // operator sets, both included
  Adapt adapt;
};

inline constexpr std::int64_t any_later = INT64_MAX;

std::span<const Adapter> elementwise_adapters();
std::span<const Adapter> shape_adapters();
std::span<const Adapter> reduction_adapters();
std::span<const Adapter> network_adapters();
std::span<const Adapter> random_adapters();
std::span<const Adapter> control_flow_adapters();
std::span<const Adapter> sequence_adapters();
std::span<const Adapter> microsoft_adapters();  // domain com.microsoft

// What takes a node of this operator; null when nothing does.
Adapt find_adapter(std::string_view domain, std::string_view op, std::int64_t opset);

// May inputs of this operator be sequences?
bool takes_sequences(std::string_view domain, std::string_view op);

// Why nothing takes it: "works on strings, ...".
std::string reason_without_adapter(std::string_view domain, std::string_view op);

}  // namespace superstep::onnx
