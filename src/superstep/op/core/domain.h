// Which of ONNX's domains an operator belongs to.
#pragma once

#include <string_view>

namespace superstep::op {

// "" for operators of the standard domain and for ours, else "ai.onnx.ml" or "ai.onnx.preview.training".
std::string_view domain_of(std::string_view op);

}  // namespace superstep::op
