// The attributes that operators of ONNX's default domain have or had.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::onnx {

// In any operator set up to the newest (ONNX 1.23, its operator schemas); empty where the operator is not one
// of ONNX's. A file with another attribute means something that nobody here knows of, so it is refused rather
// than read without it.
std::optional<std::vector<std::string>> attribute_names(std::string_view op);

}  // namespace superstep::onnx
