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

}  // namespace poplar::core
