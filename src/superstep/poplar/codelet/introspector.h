// What is behind the introspector of estimators.
#pragma once

#include <poplar/VertexIntrospector.hpp>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/codelet/codelet_class.h"

namespace poplar::core {

// Of one vertex, as long as its graph is there and does not change.
struct VertexFacts {
  const superstep::bsp::GraphData& graph;
  const superstep::bsp::VertexData& vertex;
  bool first_generation;  // of chips: they have more layouts

  const CodeletClass& codelet() const {
    return *static_cast<const CodeletClass*>(vertex.vertex_class->context.get());
  }
};

// As these chips lay it out.
layout::Vector resolved(VectorLayout layout, unsigned alignment, bool first_generation);
layout::VectorList resolved(VectorListLayout layout, bool first_generation);

// The largest number of elements that a layout can count.
std::size_t most_elements(layout::Vector layout);

}  // namespace poplar::core
