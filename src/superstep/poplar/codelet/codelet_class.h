// Vertex classes of loaded codelets, as the machine below runs them.
#pragma once

#include <memory>
#include <poplar/VertexTable.hpp>

#include "superstep/bsp/graph/vertex_class.h"

namespace poplar::core {

struct CodeletClass {
  std::shared_ptr<const void> library;          // keeps the code loaded
  const vertex_table::Vertex* entry = nullptr;  // in the library's table
  unsigned workers = 6;                         // of the target that the vertices run on
  std::string object;                           // the file of the library

  const vertex_table::Field* find(std::string_view field) const;  // null when there is none
};

// A vertex is memory that begins as zeros, in which its constructor runs where its code is there.
superstep::bsp::VertexClass machine_class(std::shared_ptr<const CodeletClass> codelet);

}  // namespace poplar::core
