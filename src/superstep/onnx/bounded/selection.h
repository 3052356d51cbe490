// Operators whose result has as many places as the data say, in bounded form.
#pragma once

#include "superstep/onnx/import/node_import.h"

namespace superstep::onnx {

std::vector<Var> bounded_nonzero(NodeImport& node);
std::vector<Var> bounded_compress(NodeImport& node);
std::vector<Var> bounded_boxes(NodeImport& node);  // NonMaxSuppression
std::vector<Var> bounded_top_k(NodeImport& node);

}  // namespace superstep::onnx
