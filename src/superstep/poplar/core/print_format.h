// How PrintTensor writes a tensor.
#pragma once

#include <poplar/Program.hpp>

#include "superstep/bsp/graph/program.h"

namespace poplar::core {

// "title: [1.0000000 2.0000000]"; a tensor of two dimensions or more has its outer brackets on lines of their
// own:
//
//     title: [
//      [1 2]
//      [3 4]
//     ]
superstep::bsp::TensorPrinter printer(const PrintTensorFmt& format);

// The format as text, and back; throws graph_object_load_error for other text.
std::string form_of(const PrintTensorFmt& format);
PrintTensorFmt format_of(const std::string& form);

}  // namespace poplar::core
