// Operators of ATen as nodes of ONNX: the table that archives of torch.export are read by.
#pragma once

#include <span>
#include <string_view>

#include "superstep/onnx/exported/translation.h"

namespace superstep::onnx {

// Adds the nodes of a call; the last of them gives the call's outputs. Throws Error (unsupported) where the
// call asks for what ONNX, or this program, does not do.
using TranslateCall = void (*)(Translation& translation, const ExportedCall& call);

struct AtenOperator {
  std::string_view name;  // without overload: "conv2d"; in-place forms are the same ("relu_")
  TranslateCall translate;
  // The result lies in the memory of the first argument: what is written into one is seen in the other.
  bool is_view = false;
};

// Null where there is none.
const AtenOperator* find_aten(std::string_view name);

std::span<const AtenOperator> aten_elementwise();
std::span<const AtenOperator> aten_layers();
std::span<const AtenOperator> aten_movement();
std::span<const AtenOperator> aten_reductions();

}  // namespace superstep::onnx
