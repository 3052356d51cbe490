// Operators of ours that neither ONNX's own can express in fixed shapes nor a decomposition: files carry them
// as functions (onnx/own_functions.cpp writes those).
#pragma once

#include <algorithm>
#include <string_view>

namespace superstep::op {

inline bool is_function_of_files(std::string_view op) {
  static constexpr std::string_view functions[] = {"superstep.KeptBoxes"};
  return std::ranges::find(functions, op) != std::end(functions);
}

}  // namespace superstep::op
